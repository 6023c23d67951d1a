/**
 * A capped collection holds the same documents in the same order on every member. It fails if a secondary trims otherwise.
 *
 * @tags: [requires_own_servers]
 */
import {startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const db = rst.getPrimary().getDB("test");
assert.commandWorked(db.createCollection("capped", {capped: true, size: 8192, max: 7}));
for (let i = 0; i < 60; i++) {
    assert.commandWorked(db.capped.insert({_id: i, s: "x".repeat((i * 37) % 900)}));
}
rst.awaitReplication();
const natural = (node) => {
    node.setSecondaryOk();
    return node.getDB("test").capped.find().sort({$natural: 1}).toArray().map((d) => d._id);
};
const [first, ...others] = rst.nodes.map(natural);
assert.eq(59, first[first.length - 1]);
assert(first.length <= 7);
others.forEach((other) => assert.eq(first, other));
rst.stepUp(rst.getSecondary());
assert.commandWorked(rst.getPrimary().getDB("test").capped.insert({_id: 60}));
rst.awaitReplication();
const after = rst.nodes.map(natural);
after.forEach((list) => assert.eq(after[0], list));
rst.stopSet();
