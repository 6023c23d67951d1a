/**
 * A secondary that was killed in the middle of its work has in the end what the primary has, each entry once.
 * It fails if it applies an entry twice, skips one, or does not start.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2, {members: {1: {priority: 0, votes: 0}}});
const primary = rst.getPrimary();
const id = rst.getNodeId(rst.getSecondary());
assert.commandWorked(insert(primary, [{_id: "n", n: 0, list: []}], {w: 2, wtimeout: 20000}));
for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 100; i++) {
        assert.commandWorked(primary.getDB("test").c.update({_id: "n"}, {$inc: {n: 1}, $push: {list: round * 100 + i}}));
    }
    rst.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
    assert.commandWorked(insert(primary, [{_id: round}]));
    rst.start(id, {}, true);
    rst.awaitSecondaryNodes();
}
rst.awaitReplication();
assert.eq(held(primary), held(rst.nodes[id]));
assert.eq(200, held(rst.nodes[id]).find((d) => d._id === "n").n);
rst.checkReplicatedDataHashes();
rst.stopSet();
