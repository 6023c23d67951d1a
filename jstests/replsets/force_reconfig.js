/**
 * When a majority is gone for good a member that is left can be made the whole set. It fails if force is refused or lost, or
 * if the version does not jump.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 1000}});
assert.commandWorked(insert(rst.getPrimary(), [{_id: 1}], {w: 3, wtimeout: 20000}));
const left = rst.getSecondary();
const gone = rst.nodes.filter((n) => n.host !== left.host).map((n) => rst.getNodeId(n));
gone.forEach((id) => rst.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}));
const config = assert.commandWorked(left.adminCommand({replSetGetConfig: 1})).config;
const version = config.version++;
config.members = config.members.filter((m) => m.host === left.host);
assert.commandFailedWithCode(left.adminCommand({replSetReconfig: config}), 10107);
assert.commandWorked(left.adminCommand({replSetReconfig: config, force: true}));
assert.soon(() => left.adminCommand({hello: 1}).isWritablePrimary);
assert.gt(assert.commandWorked(left.adminCommand({replSetGetConfig: 1})).config.version, version + 10000 - 1);
assert.commandWorked(insert(left, [{_id: 2}], {w: "majority", wtimeout: 20000}));
assert.eq([{_id: 1}, {_id: 2}], held(left));
rst.stopSet();
