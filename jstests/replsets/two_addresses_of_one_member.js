/**
 * A configuration in which two addresses lead to one node is refused by that node. Where another node makes it, the one of two
 * addresses is no member until it stands there once: it would count for two of a majority, and hold one copy.
 * It fails if such a configuration is taken, or if a node of two addresses helps to commit a write.
 *
 * @tags: [requires_own_servers]
 */
import {reconfig} from "jstests/replsets/libs/members.js";

const rst = new ReplSetTest({nodes: 2, useHostName: false, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
const alias = (node) => (/^127\./.test(node.host) ? "localhost" : "127.0.0.1") + ":" + node.port;

const [first, second] = rst.nodes;
const twice = {_id: rst.name, version: 1, members: [{_id: 0, host: first.host}, {_id: 1, host: alias(first)}]};
assert.commandFailedWithCode(first.adminCommand({replSetInitiate: twice}), ErrorCodes.InvalidReplicaSetConfig);
rst.initiate();
const primary = rst.getPrimary();
const other = primary.port === first.port ? second : first;

const change = (act, options) => reconfig(rst, act, options);
const add = (host) => (c) => c.members.push({_id: 7, host: host});
for (const options of [{}, {force: true}]) {
    const refused = change(add(alias(primary)), options);
    assert.commandFailedWithCode(refused, ErrorCodes.InvalidReplicaSetConfig);
    assert(/all map to this node/.test(refused.errmsg), tojson(refused));
}

// The other member's second address would make a majority of three with its first. Forced, the new one votes at once.
assert.commandWorked(change(add(alias(other)), {force: true}));
const state = (id) => assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).members.find((m) => m._id === id);
const its = primary.adminCommand({replSetGetConfig: 1}).config.members.find((m) => m.host === other.host)._id;
assert.soon(() => state(its).health === 0 && state(7).health === 0, () => tojson(state(7)));
assert(/does not include us/.test(state(7).lastHeartbeatMessage), tojson(state(7)));
// Without a majority the primary steps down, after all that it cannot commit.
assert.soon(() => !primary.adminCommand({hello: 1}).isWritablePrimary);

const config = assert.commandWorked(primary.adminCommand({replSetGetConfig: 1})).config;
config.members = config.members.filter((m) => m._id !== 7);
config.version++;
assert.commandWorked(primary.adminCommand({replSetReconfig: config, force: true}));
assert.soonNoExcept(() => rst.getPrimary().getDB("test").c.insert({_id: 1}, {writeConcern: {w: 2, wtimeout: 60000}}).nInserted === 1);
rst.stopSet();
