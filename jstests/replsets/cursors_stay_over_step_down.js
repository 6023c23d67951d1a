/**
 * A cursor stays open when its member's state changes, on what leads now and on what no longer does.
 * It fails if a read is cut off by an election, or misses documents.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
assert.commandWorked(insert(rst.getPrimary(), Array.from({length: 300}, (_, i) => ({_id: i})), {w: 2, wtimeout: 20000}));
const nodes = rst.nodes.slice();
const cursors = nodes.map((node) => {
    const find = {find: "c", batchSize: 10, $readPreference: {mode: "primaryPreferred"}};
    return assert.commandWorked(node.getDB("test").runCommand(find)).cursor;
});
rst.stepUp(rst.getSecondary());
nodes.forEach((node, i) => {
    const more = {getMore: cursors[i].id, collection: "c", $readPreference: {mode: "primaryPreferred"}};
    assert.eq(290, assert.commandWorked(node.getDB("test").runCommand(more)).cursor.nextBatch.length);
});
rst.stopSet();
