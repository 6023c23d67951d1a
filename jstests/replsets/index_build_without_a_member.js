/**
 * An index is built while a member is down, where its commit quorum can do without it; the member builds it when it is back.
 * It fails if the build waits for the member, or if the member stays without the index.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const primary = rst.getPrimary();
assert.commandWorked(insert(primary, [{_id: 1, a: 1}, {_id: 2, a: 2}], {w: 3}));
const away = rst.getSecondaries()[1];
rst.stop(away);
const command = {createIndexes: "c", indexes: [{key: {a: 1}, name: "a_1", unique: true}], commitQuorum: "majority", writeConcern: {w: 2}};
assert.commandWorked(primary.getDB("test").runCommand(command));
assert.commandFailedWithCode(insert(primary, [{_id: 3, a: 1}]), ErrorCodes.DuplicateKey);
const impossible = {createIndexes: "c", indexes: [{key: {b: 1}, name: "b_1"}], commitQuorum: 4};
assert.commandFailedWithCode(primary.getDB("test").runCommand(impossible), ErrorCodes.UnsatisfiableCommitQuorum);

rst.start(away, {}, true);
rst.awaitSecondaryNodes();
assert.commandWorked(insert(primary, [{_id: 4, a: 4}], {w: 3}));
for (const node of rst.nodes) {
    node.setSecondaryOk();
    assert.eq(["_id_", "a_1"], node.getDB("test").c.getIndexes().map((i) => i.name), node.host);
    assert.eq(2, node.getDB("test").c.find({a: 2}).hint("a_1").next()._id, node.host);
}
rst.checkReplicatedDataHashes();
rst.stopSet();
