/**
 * A member of another set is not taken into this one, nor one address twice. It fails if a reconfiguration mixes sets.
 *
 * @tags: [requires_own_servers]
 */
import {reconfig, startedSet} from "jstests/replsets/libs/members.js";

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
rst.stopSet();
