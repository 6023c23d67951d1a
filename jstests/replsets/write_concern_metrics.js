/**
 * Monitoring sees how long writes wait for other members, how many gave up, and what the last change of state did.
 * Fails when a wait, a timeout or a change of state is not counted, or a write counts that waits for nobody else.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const testDB = primary.getDB("test");
const metrics = () => assert.commandWorked(testDB.serverStatus()).metrics;
const insert = concern => testDB.runCommand({insert: "c", documents: [{}], writeConcern: concern});

const before = metrics().getLastError;
assert.commandWorked(insert({w: 1}));
assert.eq(Number(before.wtime.num), Number(metrics().getLastError.wtime.num), "nobody else was waited for");
assert.commandWorked(insert({w: "majority"}));
assert.eq(1, Number(metrics().getLastError.wtime.num) - Number(before.wtime.num));
assert.eq(Number(before.wtimeouts), Number(metrics().getLastError.wtimeouts));
for (const field of ["unsatisfiable", "wtimeouts"]) {
    assert.eq(0, Number(metrics().getLastError.default[field]), field);
}
assert.eq("stepUp", metrics().repl.stateTransition.lastStateTransition);

assert.commandWorked(primary.adminCommand({replSetStepDown: 600, force: true}));
const transition = metrics().repl.stateTransition;
assert.eq("stepDown", transition.lastStateTransition);
assert.eq(0, Number(transition.totalOperationsKilled));
assert.commandWorked(primary.adminCommand({replSetFreeze: 0}));
rst.getPrimary();
assert.eq("stepUp", metrics().repl.stateTransition.lastStateTransition);
assert.eq("implicit", assert.commandWorked(testDB.serverStatus()).defaultRWConcern.defaultWriteConcernSource);
assert.commandWorked(primary.adminCommand({setDefaultRWConcern: 1, defaultReadConcern: {level: "majority"}}));
assert.eq({level: "majority"}, assert.commandWorked(testDB.serverStatus()).defaultRWConcern.defaultReadConcern);
rst.stopSet();
