/**
 * A tailable cursor on a secondary waits there, and shows what the primary writes as it arrives.
 * It fails if the cursor ends, if it misses or repeats a document, or if it shows one before the secondary has it.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
assert.commandWorked(primary.getDB("test").createCollection("c", {capped: true, size: 100000}));
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2}));
const there = secondary.getDB("test");
const preference = {$readPreference: {mode: "secondary"}};
const find = Object.assign({find: "c", tailable: true, awaitData: true}, preference);
const opened = assert.commandWorked(there.runCommand(find)).cursor;
assert.eq([1], opened.firstBatch.map((d) => d._id));
const next = (maxTimeMS) => {
    const more = Object.assign({getMore: opened.id, collection: "c", maxTimeMS}, preference);
    return assert.commandWorked(there.runCommand(more)).cursor;
};

// What has not been applied here is not shown, and the cursor stays.
holdBehind(primary, [secondary], "other");
assert.commandWorked(insert(primary, [{_id: 2}, {_id: 3}]));
let batch = next(200);
assert.eq([[], opened.id], [batch.nextBatch, batch.id]);
letGo(secondary);
const seen = [];
assert.soon(() => {
    seen.push(...next(1000).nextBatch.map((d) => d._id));
    return seen.length >= 2;
});
assert.eq([2, 3], seen);
rst.stopSet();
