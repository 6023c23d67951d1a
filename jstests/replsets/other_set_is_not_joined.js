/**
 * A member of another set is not taken into this one, nor one address twice. It fails if a reconfiguration mixes sets.
 *
 * @tags: [requires_own_servers]
 */
import {reconfig, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(1);
const stranger = new ReplSetTest({nodes: 1, name: "stranger"});
stranger.startSet();
stranger.initiate();
const host = stranger.getPrimary().host;
assert.commandFailedWithCode(reconfig(rst, (c) => c.members.push({_id: 1, host: host})), [74, 103, 93]);
assert.commandFailedWithCode(reconfig(rst, (c) => c.members.push({_id: 1, host: c.members[0].host})), [103, 93]);
assert.commandFailedWithCode(reconfig(rst, (c) => c.members.push({_id: 0, host: "localhost:1"})), [103, 93]);
assert.commandFailedWithCode(reconfig(rst, (c) => c._id = "other"), [93, 103]);
assert.eq(1, assert.commandWorked(rst.getPrimary().adminCommand({replSetGetConfig: 1})).config.members.length);
assert.eq("stranger", stranger.getPrimary().adminCommand({hello: 1}).setName);
stranger.stopSet();

// Nor one of another set of the same name, whose members would take its primary for theirs.
const namesake = new ReplSetTest({nodes: 1, name: rst.name});
namesake.startSet();
const config = namesake.getReplSetConfig();
config.members[0]._id = 20;
namesake.initiate(config);
const other = namesake.getPrimary().host;
assert.commandFailedWithCode(reconfig(rst, (c) => c.members.push({_id: 1, host: other})), ErrorCodes.NewReplicaSetConfigurationIncompatible);
// Were it forced in, it would be none that is up.
const forced = assert.commandWorked(rst.getPrimary().adminCommand({replSetGetConfig: 1})).config;
forced.version++;
forced.members.push({_id: 1, host: other, votes: 0, priority: 0});
assert.commandWorked(rst.getPrimary().adminCommand({replSetReconfig: forced, force: true}));
assert.soon(() => row(rst.getPrimary(), namesake.getPrimary()).lastHeartbeatMessage.includes("replica set IDs do not match"));
assert.eq(0, row(rst.getPrimary(), namesake.getPrimary()).health);
assert.eq(20, namesake.getPrimary().adminCommand({replSetGetConfig: 1}).config.members[0]._id);
namesake.stopSet();
rst.stopSet();
