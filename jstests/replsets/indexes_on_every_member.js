/**
 * An index is there on every member or on none. It fails if a build that is refused leaves something behind, or if one that
 * succeeds is not used on a secondary.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const primary = rst.getPrimary();
const db = primary.getDB("test");
assert.commandWorked(insert(primary, Array.from({length: 500}, (_, i) => ({_id: i, k: i % 100, u: i})), {w: 3, wtimeout: 20000}));
assert.commandWorked(db.runCommand({createIndexes: "c", indexes: [{key: {k: 1}, name: "k"}, {key: {u: 1}, name: "u", unique: true}]}));
assert.commandFailedWithCode(db.runCommand({createIndexes: "c", indexes: [{key: {k: 1}, name: "k_unique", unique: true}]}), 11000);
assert.commandFailedWithCode(
    rst.getSecondary().getDB("test").runCommand({createIndexes: "c", indexes: [{key: {z: 1}, name: "z"}]}), 10107);
rst.awaitReplication();
for (const node of rst.nodes) {
    node.setSecondaryOk();
    const c = node.getDB("test").c;
    assert.eq(["_id_", "k", "u"], c.getIndexes().map((i) => i.name).sort());
    assert.eq(5, c.find({k: 7}).hint("k").itcount());
}
assert.commandWorked(db.c.dropIndex("k"));
rst.awaitReplication();
rst.nodes.forEach((node) => assert.eq(["_id_", "u"], node.getDB("test").c.getIndexes().map((i) => i.name).sort()));
rst.checkReplicatedDataHashes();
rst.stopSet();
