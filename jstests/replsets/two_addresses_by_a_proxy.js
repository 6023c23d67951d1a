/**
 * An address that is forwarded leads to a member that stands in the configuration under its own address already. Such a configuration
 * is refused, and where it is forced the second address counts for nothing, while the member goes on under its own.
 * It fails if such a configuration is taken, or if a write is taken for copied once more than it is.
 *
 * @tags: [requires_own_servers]
 */
import {insert, reconfig, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const primary = rst.getPrimary();
const other = rst.getSecondary();
const its = row(primary, other)._id;
const proxy = new MongoBridge({dest: other.host});
proxy.connectToBridge();
const add = (config) => config.members.push({_id: 7, host: proxy.host});

const refused = reconfig(rst, add);
assert.commandFailedWithCode(refused, ErrorCodes.InvalidReplicaSetConfig);
assert(/both map to one node/.test(refused.errmsg), tojson(refused));

assert.commandWorked(reconfig(rst, add, {force: true}));
const state = (id) => assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).members.find((m) => m._id === id);
assert.soon(() => state(7).health === 0 && /is the member with _id/.test(state(7).lastHeartbeatMessage), () => tojson(state(7)));
assert.eq(1, state(its).health, tojson(state(its)));
const late = insert(rst.getPrimary(), [{_id: 1}], {w: 4, wtimeout: 1000});
assert.commandFailedWithCode(late, ErrorCodes.WriteConcernFailed);
assert.commandWorked(insert(rst.getPrimary(), [{_id: 2}], {w: 3, wtimeout: 60000}));
const without = (config) => config.members = config.members.filter((member) => member._id !== 7);
assert.commandWorked(reconfig(rst, without));
rst.stopSet();

const fresh = [0, 1].map(() => MongoRunner.runMongod({replSet: "fresh"}));
const second = new MongoBridge({dest: fresh[1].host});
second.connectToBridge();
const hosts = [fresh[0].host, fresh[1].host, second.host];
const twice = {_id: "fresh", version: 1, members: hosts.map((host, i) => ({_id: i, host: host}))};
assert.commandFailedWithCode(fresh[0].adminCommand({replSetInitiate: twice}), ErrorCodes.InvalidReplicaSetConfig);
fresh.forEach((node) => MongoRunner.stopMongod(node));
[proxy, second].forEach((bridge) => bridge.stop());
