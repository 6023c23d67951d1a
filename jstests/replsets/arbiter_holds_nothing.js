/**
 * An arbiter votes and has no data: it shows none, takes none, and counts toward no write concern.
 * It fails if an arbiter serves a read or a write, if a write waits for it, or if its vote does not elect a primary.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {2: {arbiterOnly: true, priority: 0}}});
const primary = rst.getPrimary();
const arbiter = rst.nodes[2];
assert.soon(() => row(primary, arbiter).stateStr === "ARBITER");
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2}));
const reply = insert(primary, [{_id: 2}], {w: 3});
assert.eq(ErrorCodes.UnsatisfiableWriteConcern, assert.commandWorkedIgnoringWriteConcernErrors(reply).writeConcernError.code);
const hello = assert.commandWorked(arbiter.adminCommand({hello: 1}));
assert.eq([true, false, false], [hello.arbiterOnly, hello.isWritablePrimary, hello.secondary]);
assert.eq([arbiter.host], hello.arbiters);
assert.eq(2, hello.hosts.length);

const test = arbiter.getDB("test");
const any = {$readPreference: {mode: "nearest"}};
assert.commandFailedWithCode(test.runCommand(Object.assign({find: "c"}, any)), ErrorCodes.NotPrimaryOrSecondary);
assert.commandFailedWithCode(test.runCommand({insert: "c", documents: [{_id: 3}]}), ErrorCodes.NotWritablePrimary);
assert.commandFailed(arbiter.adminCommand({replSetStepUp: 1}));

// With the arbiter's vote the other member leads when the primary is gone.
assert.commandWorked(insert(primary, [{_id: 3}], {w: 2}));
const other = rst.nodes.find((node) => node !== primary && node !== arbiter);
rst.stop(primary);
assert.soon(() => other.adminCommand({hello: 1}).isWritablePrimary, "the arbiter does not vote");
assert.commandWorked(insert(other, [{_id: 4}]));
rst.start(primary, {}, true);
assert.soon(() => held(other).length === 4 && held(rst.nodes[rst.getNodeId(primary)]).length === 4);
rst.stopSet();
