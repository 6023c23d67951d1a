/**
 * Query settings are wanted of all queries of a shape, on every member and router: they reject them, or hold them to indexes.
 * It fails if queries of the shape are not rejected or may use other indexes, if other queries are touched, or if settings that
 * were removed go on.
 *
 * # Settings are kept on sets and in clusters alone.
 * @tags: [requires_replication]
 */
const coll = db.query_settings;
coll.drop();
for (let i = 0; i < 10; i++) {
    assert.commandWorked(coll.insert({_id: i, a: i, b: i}));
}
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({b: 1}));
const name = coll.getName();
const admin = db.getSiblingDB("admin");
const shape = {find: name, filter: {a: 1, b: 1}, $db: db.getName()};
const shown = () => admin.aggregate([{$querySettings: {}}]).toArray();
const rejected = command => assert.commandFailedWithCode(db.runCommand(command), 411);

const reply = assert.commandWorked(admin.runCommand({setQuerySettings: shape, settings: {reject: true}}));
assert.eq(reply.queryShapeHash.length, 64);
assert.eq(shown().map(s => s.queryShapeHash), [reply.queryShapeHash]);
assert.eq(shown()[0].representativeQuery, shape);
rejected({find: name, filter: {a: 3, b: 4}});
assert.eq(coll.find({b: 3, a: 3}).itcount(), 1, "the order of fields is part of this shape");
assert.eq(coll.find({a: 3}).itcount(), 1);
assert.eq(coll.find({_id: 3}).itcount(), 1);

// Settings are merged; a hash names the shape as well.
const hints = index => ({indexHints: [{ns: {db: db.getName(), coll: name}, allowedIndexes: [index]}]});
assert.commandWorked(admin.runCommand({setQuerySettings: reply.queryShapeHash, settings: {reject: false, ...hints("b_1")}}));
assert.eq(shown().length, 1);
assert.eq(coll.find({a: 3, b: 3}).itcount(), 1);
if (db.hello().msg !== "isdbgrid") {
    const plan = coll.find({a: 3, b: 3}).explain().queryPlanner;
    assert.eq(plan.winningPlan.inputStage.indexName, "b_1", tojson(plan));
}

assert.commandWorked(admin.runCommand({setQuerySettings: {aggregate: name, pipeline: [{$match: {b: 1}}], $db: db.getName()}, settings: {reject: true}}));
assert.commandWorked(admin.runCommand({setQuerySettings: {distinct: name, key: "a", $db: db.getName()}, settings: {reject: true}}));
rejected({aggregate: name, pipeline: [{$match: {b: 7}}], cursor: {}});
rejected({distinct: name, key: "a"});
assert.eq(shown().length, 3);
for (const setting of shown()) {
    assert.commandWorked(admin.runCommand({removeQuerySettings: setting.queryShapeHash}));
}
assert.eq(shown(), []);
assert.eq(coll.aggregate([{$match: {b: 7}}]).itcount(), 1);
assert.commandWorked(admin.runCommand({removeQuerySettings: shape}));

const refused = (query, settings, code) =>
    assert.commandFailedWithCode(admin.runCommand({setQuerySettings: query, settings: settings}), code);
refused(shape, {}, 8727502);
refused(shape, {reject: false}, 7746604);
refused(shape, {queryFramework: "other"}, ErrorCodes.BadValue);
refused(shape, {indexHints: [{ns: {coll: name}, allowedIndexes: ["a"]}]}, 8727500);
refused({find: name, filter: {_id: 1}, $db: db.getName()}, {reject: true}, 7746606);
refused({find: "c", $db: "local"}, {reject: true}, 8584900);
refused({count: name, $db: db.getName()}, {reject: true}, 7746402);
refused("abc", {reject: true}, ErrorCodes.BadValue);
