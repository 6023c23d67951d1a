/**
 * A member in maintenance is RECOVERING: it serves no reads, goes on copying, and comes back when as often told so.
 * It fails if it serves reads meanwhile, stays away afterwards, or if a primary takes the command.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2, {members: {1: {priority: 0}}});
const [primary, member] = [rst.getPrimary(), rst.getSecondary()];
const set = (on) => member.adminCommand({replSetMaintenance: on});
assert.commandFailedWithCode(primary.adminCommand({replSetMaintenance: 1}), 95);
assert.commandFailedWithCode(set(0), 96);
assert.commandWorked(set(1));
assert.commandWorked(set(1));
assert.eq("RECOVERING", row(member, member).stateStr);
const read = {find: "c", $readPreference: {mode: "secondaryPreferred"}};
assert.commandFailedWithCode(member.getDB("test").runCommand(read), 13436);
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2, wtimeout: 20000}));
assert.soon(() => row(primary, member).stateStr === "RECOVERING");
assert.commandWorked(set(0));
assert.eq("RECOVERING", row(member, member).stateStr);
assert.commandWorked(set(0));
rst.awaitSecondaryNodes();
assert.eq([{_id: 1}], held(member));
rst.stopSet();

// One that was in maintenance when it heard of the primary for the last time may be elected when it is out of it.
const three = startedSet(3, {members: {2: {arbiterOnly: true}}, settings: {electionTimeoutMillis: 1000}});
const [leader, follower] = [three.getPrimary(), three.getSecondary()];
assert.commandWorked(follower.adminCommand({replSetMaintenance: 1}));
assert.soon(() => row(leader, follower).stateStr === "RECOVERING");
three.stop(leader);
assert.commandWorked(follower.adminCommand({replSetMaintenance: 0}));
assert.soon(() => follower.adminCommand({hello: 1}).isWritablePrimary, "nobody was elected", 30000);
three.stopSet();
