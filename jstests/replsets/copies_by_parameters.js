/**
 * An operator says whom a new member copies from, to spare the primary, and after how many attempts it gives up.
 * It fails if another member is copied from, or if one that cannot copy seems to be at it for ever.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2}));
const join = (id, parameters) => {
    const added = rst.add({setParameter: parameters});
    assert.commandWorked(reconfig(rst, (config) => config.members.push({_id: id, host: added.host, votes: 0, priority: 0})));
    return added;
};
const held_up = {"failpoint.initialSyncHangBeforeFinish": tojson({mode: "alwaysOn"})};
for (const [id, mode, source] of [[2, "secondary", secondary], [3, "primary", primary]]) {
    const added = join(id, Object.assign({initialSyncSourceReadPreference: mode}, held_up));
    assert.commandWorked(added.adminCommand({waitForFailPoint: "initialSyncHangBeforeFinish", timesEntered: 1, maxTimeMS: 60000}));
    assert.eq(source.host, assert.commandWorked(added.adminCommand({replSetGetStatus: 1})).syncSourceHost, mode);
    assert.commandWorked(added.adminCommand({configureFailPoint: "initialSyncHangBeforeFinish", mode: "off"}));
    rst.awaitSecondaryNodes(60000, [added]);
    assert.eq([{_id: 1}], held(added));
}

const hopeless = join(4, {numInitialSyncAttempts: 2, "failpoint.failInitialSyncWithBadHost": tojson({mode: "alwaysOn"})});
assert.soon(() => !checkProgram(hopeless.pid).alive, "it goes on trying", 60000);
assert.eq(MongoRunner.EXIT_ABRUPT, Number(checkProgram(hopeless.pid).exitCode));
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
