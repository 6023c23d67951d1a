/**
 * The profiler says how an operation found its documents, which is what one looks for in slow ones.
 * Fails when the plan or the numbers of keys and documents examined are missing or wrong.
 *
 * @tags: [
 *   # Routers keep no profile.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const mine = db.getSiblingDB("profile_plan_test");
assert.commandWorked(mine.runCommand({profile: 0}));
assert.commandWorked(mine.dropDatabase());
const coll = mine.c;
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i, a: i % 2, b: i}))));
assert.commandWorked(coll.createIndex({a: 1}));

assert.commandWorked(mine.runCommand({profile: 2}));
try {
    assert.eq(10, coll.find({a: 1}).itcount());
    assert.eq(5, coll.find({b: {$lt: 5}}).itcount());
    assert.commandWorked(coll.update({b: 3}, {$set: {c: 1}}));
    assert.eq(10, coll.aggregate([{$match: {a: 0}}]).itcount());
} finally {
    assert.commandWorked(mine.runCommand({profile: 0}));
}
function entry(filter) {
    const found = mine.system.profile.find(Object.assign({ns: coll.getFullName()}, filter)).toArray();
    assert.eq(1, found.length, () => tojson(filter));
    return found[0];
}
function plan(filter) {
    const document = entry(filter);
    return [document.planSummary, document.keysExamined, document.docsExamined];
}
assert.eq(["IXSCAN { a: 1 }", 10, 10], plan({"command.filter.a": 1}));
assert.eq(["COLLSCAN", 0, 20], plan({"command.filter.b": {$exists: true}}));
assert.eq("COLLSCAN", plan({op: "update"})[0]);
assert.eq(["IXSCAN { a: 1 }", 10, 10], plan({"command.aggregate": "c"}));
assert.commandWorked(mine.dropDatabase());
