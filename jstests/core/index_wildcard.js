/**
 * A wildcard index answers queries on fields nobody named when it was made, and gives what a scan gives.
 * It fails if a key is missing for some value (of arrays, embedded or empty documents), or if the planner uses the index
 * for a predicate that documents outside it may meet.
 */
const coll = db.index_wildcard;
coll.drop();

const values = [0, 1, 2, "x", null, [], {}, [1, 2], [[1]], {b: 1}, {b: [0, 2]}, [{b: 1}, {b: "x"}], {b: {c: 2}}, {0: 1}, [{0: 2}],
                [5, {b: 1}], [{b: 5}, {q: 1}]];
let id = 0;
for (const a of values) {
    assert.commandWorked(coll.insert({_id: id++, a: a}));
    for (const b of [1, {b: 1}]) {
        assert.commandWorked(coll.insert({_id: id++, a: a, t: b === 1 ? 1 : 2, z: {y: b}}));
    }
}
assert.commandWorked(coll.insert({_id: id++, t: 1}));

const all = {name: "all", key: {"$**": 1}};
const some = {name: "some", key: {"$**": -1}, wildcardProjection: {a: 1}};
const below = {name: "below", key: {"z.$**": 1}};
const beside = {name: "beside", key: {t: 1, "$**": 1}, wildcardProjection: {t: 0}};
const without = {name: "without", key: {"$**": 1}, wildcardProjection: {"a.b": 0}};
for (const spec of [all, some, below, beside, without]) {
    assert.commandWorked(coll.getDB().runCommand({createIndexes: coll.getName(), indexes: [spec]}));
}
assert.eq(coll.getIndexes().find(i => i.name === "some").wildcardProjection, {a: 1});

const tests = [1, "x", null, [], {}, [1, 2], {b: 1}, {$gt: 0}, {$lte: 1}, {$gte: ""}, {$in: [1, "x"]}, {$in: [1, null]}, {$in: [{b: 1}, 2]},
               {$exists: true}, {$exists: false}, {$ne: 1}, {$ne: null}, {$type: "array"}, {$type: "object"}, {$type: "string"},
               {$elemMatch: {$gte: 1}}, {$elemMatch: {b: 1}}, {$not: {$gt: 0}}, {$gt: MinKey}, {$lt: {}}, {$gte: []}, {$size: 1}, /^x/];
const paths = ["a", "a.b", "a.0", "a.0.b", "a.b.c", "a.0.0", "z.y", "z.y.b", "z", "t", "_id"];
let used = 0;
const ids = q => q.toArray().map(d => d._id).sort((x, y) => x - y);
/** The documents by each of the indexes that takes the filter as a hint; those of a scan are expected. */
function byHints(filter, expected, indexes) {
    for (const index of indexes) {
        const res = db.runCommand({find: coll.getName(), filter: filter, hint: index.name, batchSize: 1000});
        if (!res.ok) {
            assert.commandFailedWithCode(res, 291 /* NoQueryExecutionPlans */);
            continue;
        }
        used++;
        assert.eq(ids(new DBCommandCursor(db, res)), expected, () => index.name + " " + tojson(filter));
    }
}
for (const path of paths) {
    for (const test of tests) {
        for (const filter of [{[path]: test}, {t: 1, [path]: test}, {$or: [{[path]: test}, {"z.y": 1}]}]) {
            const expected = ids(coll.find(filter).hint({$natural: 1}));
            assert.eq(ids(coll.find(filter)), expected, () => tojson(filter));
            assert.eq(coll.find(filter).count(), expected.length, () => tojson(filter));
            byHints(filter, expected, [all, some, below, beside]);
        }
    }
}
for (const test of tests) {
    byHints({a: test}, ids(coll.find({a: test}).hint({$natural: 1})), [without]);
}
// Of two predicates on a path, each may hold for another value of an array, one of which has no key there.
const pairs = [1, null, {}, {b: 1}, {$gt: 4}, {$exists: true}, {$ne: 1}, {$type: "object"}, {$in: [1, "x"]}, {$elemMatch: {$gte: 1}}, {$lt: {}}];
for (const [path, tests] of [["a", pairs], ["a.b", [null, {$gt: 4}, {$exists: true}]]]) {
    for (const one of tests) {
        for (const other of tests.filter(p => p !== one)) {
            const filter = {$and: [{[path]: one}, {[path]: other}]};
            byHints(filter, ids(coll.find(filter).hint({$natural: 1})), [all, without]);
        }
    }
}
assert.gt(used, 300, "hints were taken");

// Changes reach the keys of old and new paths.
assert.commandWorked(coll.insert({_id: "u", p: {q: [1, {r: 2}]}}));
assert.commandWorked(coll.update({_id: "u"}, {$set: {"p.q.1": {s: 3}}, $unset: {none: 1}}));
const by = filter => coll.find(filter).hint("all").toArray().map(d => d._id);
assert.eq(by({"p.q.r": 2}), []);
assert.eq(by({"p.q.s": 3}), ["u"]);
assert.commandWorked(coll.remove({_id: "u"}));
assert.eq(by({"p.q": {$exists: true}}), []);

// What a wildcard index cannot be.
const refused = (key, options, code) => assert.commandFailedWithCode(
    db.runCommand({createIndexes: coll.getName(), indexes: [Object.assign({key: key, name: "refused"}, options)]}), code);
refused({"$**": 1}, {unique: true}, ErrorCodes.CannotCreateIndex);
refused({"$**": 1}, {sparse: true}, ErrorCodes.CannotCreateIndex);
refused({"$**": 1}, {expireAfterSeconds: 5}, ErrorCodes.CannotCreateIndex);
refused({"$**": "hashed"}, {}, ErrorCodes.CannotCreateIndex);
refused({"$**.a": 1}, {}, ErrorCodes.CannotCreateIndex);
refused({"a.$**": 1, "b.$**": 1}, {}, 7246201);
refused({t: 1, "$**": 1}, {wildcardProjection: {z: 0}}, 7246209);
refused({"a.$**": 1}, {wildcardProjection: {z: 0}}, ErrorCodes.FailedToParse);
refused({"$**": 1}, {wildcardProjection: {}}, ErrorCodes.FailedToParse);
refused({"$**": 1}, {wildcardProjection: {a: 1, b: 0}}, 31254);
refused({"$**": 1}, {wildcardProjection: {a: 1, "a.b": 1}}, 31249);
refused({"$**": 1}, {wildcardProjection: {a: "x"}}, 51271);
refused({a: 1}, {wildcardProjection: {a: 1}}, ErrorCodes.BadValue);
assert.commandFailedWithCode(coll.insert({t: [1]}), 7246301, "fields beside the wildcard are no arrays");
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), hint: "all", min: {a: 1}}), 51174);
assert.commandWorked(coll.dropIndex({"z.$**": 1}));
