/**
 * A new member that finds nobody to copy from looks as often as an operator says, tells of each attempt that found nobody, and gives up
 * after as many as it may make. One that may go on copies when somebody comes.
 * It fails if a member looks for ever, or if one that looks in vain for a while never becomes a secondary.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(1);
const primary = rst.getPrimary();
assert.commandWorked(insert(primary, [{_id: 1}]));
const join = (id, parameters) => {
    const added = rst.add({setParameter: parameters});
    assert.commandWorked(reconfig(rst, (config) => config.members.push({_id: id, host: added.host, votes: 0, priority: 0})));
    return added;
};
const picky = {numInitialSyncConnectAttempts: 1, initialSyncSourceReadPreference: "secondary"};

const hopeless = join(1, Object.assign({numInitialSyncAttempts: 2}, picky));
assert.soon(() => !checkProgram(hopeless.pid).alive, "it goes on looking", 60000);
assert.eq(MongoRunner.EXIT_ABRUPT, Number(checkProgram(hopeless.pid).exitCode));

const patient = join(2, Object.assign({numInitialSyncAttempts: 1000}, picky));
// It has no configuration at first.
const status = () => patient.adminCommand({replSetGetStatus: 1}).initialSyncStatus || {};
assert.soon(() => status().failedInitialSyncAttempts >= 2, () => tojson(status()), 60000);
const attempt = status().initialSyncAttempts[0];
assert(/^InitialSyncOplogSourceMissing: No valid sync source found/.test(attempt.status), tojson(attempt));
assert.eq(":27017", attempt.syncSource);

const source = join(3, {});
rst.awaitSecondaryNodes(60000, [source, patient]);
assert.eq([{_id: 1}], held(patient));
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
