/**
 * A conversion that runs out of time is asked for again, and must not find what it had begun before.
 * It fails if a copy is left behind, or if a later conversion goes on with one, which brings back what was deleted since.
 *
 * @tags: [assumes_unsharded_collection]
 */
const test = db.getSiblingDB("convert_to_capped_leaves_nothing");
assert.commandWorked(test.dropDatabase());
assert.commandWorked(test.c.insert([...Array(20000).keys()].map((i) => ({_id: i, old: "x".repeat(50)}))));
for (const maxTimeMS of [2, 5, 10]) {
    assert.commandWorkedOrFailedWithCode(test.runCommand({convertToCapped: "c", size: 100000000, maxTimeMS}), ErrorCodes.MaxTimeMSExpired);
    assert.eq(["c"], test.getCollectionNames());
}
assert.eq(20000, test.c.find().itcount());
test.c.drop();
assert.commandWorked(test.c.insert([{_id: 1}, {_id: 2}]));
assert.commandWorked(test.runCommand({convertToCapped: "c", size: 100000000}));
assert.eq([{_id: 1}, {_id: 2}], test.c.find().toArray());
assert(test.c.stats().capped);
assert.commandWorked(test.dropDatabase());
