/**
 * The profiler shows how much an operation wrote to indexes, what each stage of its plan did, and what opened the cursor of a getMore.
 * Fails when one of these is missing, wrong, or shown of an operation that has none.
 *
 * @tags: [
 *   # Routers keep no profile.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const mine = db.getSiblingDB("profile_entries_test");
assert.commandWorked(mine.runCommand({profile: 0}));
assert.commandWorked(mine.dropDatabase());
const coll = mine.c;
assert.commandWorked(coll.insert([...Array(10).keys()].map((i) => ({_id: i, a: i % 2, b: 9 - i, list: [i, i + 1]}))));
assert.commandWorked(coll.createIndexes([{a: 1}, {b: 1}, {list: 1}]));

assert.commandWorked(mine.runCommand({profile: 2}));
try {
    assert.commandWorked(coll.insert({_id: 10, a: 5, b: 5, list: [1, 2, 3]}));
    assert.commandWorked(coll.update({a: 5}, {$set: {b: 6, c: 1}}));
    assert.commandWorked(coll.update({a: 5}, {$set: {c: 2}}));
    assert.commandWorked(coll.remove({a: 5}));
    assert.eq(5, coll.find({a: 1}).sort({c: 1}).itcount());
    assert.eq(2, coll.find({a: 1, b: {$gt: 4}}).itcount());
    assert.eq(5, coll.find({a: 0}).batchSize(2).comment("in batches").itcount());
    assert.eq({_id: 3, a: 1, b: 6, list: [3, 4]}, coll.find({_id: 3}).next());
    assert.eq(5, coll.aggregate([{$match: {a: 1}}, {$project: {a: 1}}]).itcount());
    assert.neq(null, coll.findAndModify({query: {b: 0}, update: {$set: {b: -1}}}));
} finally {
    assert.commandWorked(mine.runCommand({profile: 0}));
}
function entry(filter) {
    const found = mine.system.profile.find(Object.assign({ns: coll.getFullName()}, filter)).toArray();
    assert.eq(1, found.length, () => tojson(filter) + tojson(found));
    return found[0];
}
function keys(document) {
    return [document.keysInserted, document.keysDeleted];
}
assert.eq([6, undefined], keys(entry({op: "insert"})), "one of _id, a and b, three of the list");
const updates = mine.system.profile.find({op: "update"}).sort({ts: 1}).toArray();
assert.eq([[1, 1], [undefined, undefined]], updates.map(keys));
assert.eq(["UPDATE", "FETCH", "IXSCAN"], [updates[0].execStats.stage, updates[0].execStats.inputStage.stage, updates[0].execStats.inputStage.inputStage.stage]);
const removed = entry({op: "remove"});
assert.eq([undefined, 6], keys(removed));
assert.eq("DELETE", removed.execStats.stage);
assert.eq([1, 1], keys(entry({"command.findAndModify": "c"})));

const sorted = entry({"command.sort": {c: 1}});
assert.eq([true, undefined], [sorted.hasSortStage, sorted.fromMultiPlanner], tojson(sorted));
assert.eq(["SORT", 5], [sorted.execStats.stage, sorted.execStats.nReturned]);
assert.eq([5, 5], [sorted.execStats.inputStage.docsExamined, sorted.execStats.inputStage.inputStage.keysExamined], tojson(sorted));
const tried = entry({"command.filter.b": {$exists: true}, op: "query"});
assert.eq([undefined, true], [tried.hasSortStage, tried.fromMultiPlanner], tojson(tried));
assert.eq(2, tried.execStats.nReturned);
const point = entry({"command.filter._id": 3});
assert.eq(1, point.execStats.nReturned, tojson(point));
assert.eq("PROJECTION_SIMPLE", entry({"command.aggregate": "c"}).execStats.stage, "what the pipeline reads with");

const more = mine.system.profile.find({op: "getmore"}).sort({ts: 1}).toArray();
assert.eq(2, more.length);
for (const one of more) {
    assert.eq([{a: 0}, "in batches"], [one.originatingCommand.filter, one.originatingCommand.comment]);
    assert.eq("in batches", one.command.comment, "a batch has the comment of what opened its cursor");
    assert.eq("IXSCAN { a: 1 }", one.planSummary);
    assert(one.execStats.hasOwnProperty("nReturned"), tojson(one));
}
assert.eq([2, 1], more.map((one) => one.nreturned));
assert.eq([undefined, true], more.map((one) => one.cursorExhausted));
assert(!entry({op: "query", "command.comment": "in batches"}).hasOwnProperty("originatingCommand"));
assert.commandWorked(mine.dropDatabase());
