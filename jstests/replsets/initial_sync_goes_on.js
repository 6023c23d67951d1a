/**
 * A member that copies everything asks its source again when the connection breaks, and goes on where it was.
 * It fails if it begins another copy, or if it misses or doubles anything.
 *
 * @tags: [requires_own_servers]
 */
import {insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(1);
const primary = rst.getPrimary();
const filler = "x".repeat(1 << 20);
for (let i = 0; i < 12; i++) {
    assert.commandWorked(insert(primary, [{_id: i, filler}]));
}
const commands = () => assert.commandWorked(primary.adminCommand({serverStatus: 1})).metrics.commands;
const breaks = {failCommands: ["_replSetCopyNext"], closeConnection: true, failInternalCommands: true};
// The second, third and fourth of some twenty requests.
const mode = {skip: 1};
assert.commandWorked(primary.adminCommand({configureFailPoint: "failCommand", mode: mode, data: breaks}));
const added = rst.add({});
assert.commandWorked(reconfig(rst, (config) => config.members.push({_id: 1, host: added.host, votes: 0, priority: 0})));
assert.soon(() => commands()._replSetCopyNext.failed >= 3 || checkLog.getGlobalLog(added).some((line) => /Asking again/.test(line)));
assert.commandWorked(primary.adminCommand({configureFailPoint: "failCommand", mode: "off"}));
rst.awaitSecondaryNodes();
assert.eq(1, commands()._replSetCopyOpen.total);
rst.awaitReplication();
rst.checkReplicatedDataHashes();
rst.stopSet();
