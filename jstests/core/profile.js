/**
 * The profiler writes a document about each operation into a capped collection that can be queried.
 * Fails when an operation is missing, described by another name or without its numbers, or the level is not heeded.
 *
 * @tags: [
 *   # Routers keep no profile.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const mine = db.getSiblingDB("profile_test");
assert.commandWorked(mine.runCommand({profile: 0}));
mine.system.profile.drop();
assert.commandWorked(mine.dropDatabase());
const coll = mine.c;
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i, a: i % 2}))));
assert.commandWorked(coll.createIndex({a: 1}));

const was = assert.commandWorked(mine.runCommand({profile: -1}));
assert.eq(0, was.was);
assert.eq("number", typeof was.slowms);
assert.eq(1, was.sampleRate);
assert.eq(0, mine.system.profile.find().itcount());

assert.commandWorked(mine.runCommand({profile: 2}));
try {
    assert.eq(2, assert.commandWorked(mine.runCommand({profile: -1})).was);
    assert.eq(10, coll.find({a: 1}).comment("the query").itcount());
    assert.commandWorked(coll.insert({_id: 100}));
    assert.commandWorked(coll.update({_id: 100}, {$set: {b: 1}}));
    assert.commandWorked(coll.remove({_id: 100}));
    assert.eq(2, coll.distinct("a").length);
    assert.eq(20, coll.aggregate([{$match: {}}]).itcount());
    assert.commandFailed(mine.runCommand({find: "c", filter: {$bad: 1}}));
} finally {
    assert.commandWorked(mine.runCommand({profile: 0}));
}
function entry(filter) {
    const found = mine.system.profile.find(Object.assign({ns: coll.getFullName()}, filter)).toArray();
    assert.eq(1, found.length, () => tojson(filter) + tojson(mine.system.profile.find().toArray()));
    for (const field of ["op", "ns", "command", "millis", "ts", "client"]) {
        assert(found[0].hasOwnProperty(field), () => field + " " + tojson(found[0]));
    }
    assert(found[0].ts instanceof Date);
    return found[0];
}
const query = entry({op: "query", "command.comment": "the query"});
assert.eq({a: 1}, query.command.filter);
assert.eq(10, query.nreturned);
assert.eq(1, entry({op: "insert"}).ninserted);
const update = entry({op: "update"});
assert.eq([1, 1], [update.nMatched, update.nModified]);
assert.eq(1, entry({op: "remove"}).ndeleted);
entry({op: "command", "command.distinct": "c"});
entry({op: "command", "command.aggregate": "c"});
assert.eq(ErrorCodes.BadValue, entry({errCode: {$exists: true}}).errCode);

// Off again nothing is written; the collection is a capped one.
const count = mine.system.profile.find().itcount();
assert.eq(20, coll.find().itcount());
assert.eq(count, mine.system.profile.find().itcount());
assert(mine.system.profile.isCapped());
assert.commandFailedWithCode(mine.runCommand({profile: "all"}), ErrorCodes.TypeMismatch);
assert.commandWorked(mine.dropDatabase());
