// Migrations that are stopped at their steps, on the donor (moveChunk) and on the recipient (migrate).
export const moveChunkStepNames = {
    parsedOptions: 1, gotDistLock: 2, startedMoveChunk: 3, reachedSteadyState: 4, chunkDataCommitted: 5, committed: 6,
};
export const migrateStepNames = {
    deletedPriorDataInRange: 1, copiedIndexes: 2, cloned: 3, catchup: 4, steady: 5, done: 6,
};

// The body of the parallel shell: a moveChunk through the router at `mongosURL`.
function runMoveChunk(mongosURL, find, bounds, ns, to, expectSuccess, forceJumbo) {
    const admin = new Mongo(mongosURL).getDB("admin");
    const command = { moveChunk: ns, to, _waitForDelete: true };
    if (find) command.find = find;
    if (bounds) command.bounds = bounds;
    if (forceJumbo) command.forceJumbo = true;
    const reply = admin.runCommand(command);
    print("moveChunk answered: " + tojson(reply));
    if (expectSuccess) assert.commandWorked(reply);
    else assert.commandFailed(reply);
}
// Moves a chunk in another shell; returns the function that waits for it. `staticMongod` is only what that shell connects to.
export function moveChunkParallel(staticMongod, mongosURL, find, bounds, ns, to, expectSuccess = true, forceJumbo = false) {
    assert(Boolean(find) !== Boolean(bounds), "either find or bounds, not both");
    return startParallelShell(funWithArgs(runMoveChunk, mongosURL, find, bounds, ns, to, expectSuccess, forceJumbo), staticMongod.port);
}

// How often a point had been entered when it was set, so that waiting waits for a new entrance.
const entered = new Map();

function set(conn, name, mode) {
    const reply = assert.commandWorked(conn.adminCommand({ configureFailPoint: name, mode }));
    if (mode !== "off") entered.set(conn.host + name, Number(reply.count));
}
function waitFor(conn, name) {
    const before = entered.get(conn.host + name) || 0;
    assert.commandWorked(conn.adminCommand({ waitForFailPoint: name, timesEntered: before + 1, maxTimeMS: 5 * 60 * 1000 }));
}
const primaryOf = (conn) => (conn.rs && conn.rs.getPrimary ? conn.rs.getPrimary() : conn);
const donorPoint = (step) => "moveChunkHangAtStep" + step;
const recipientPoint = (step) => "migrateThreadHangAtStep" + step;

export const pauseMoveChunkAtStep = (conn, step) => set(primaryOf(conn), donorPoint(step), "alwaysOn");
export const unpauseMoveChunkAtStep = (conn, step) => set(primaryOf(conn), donorPoint(step), "off");
export const waitForMoveChunkStep = (conn, step) => waitFor(primaryOf(conn), donorPoint(step));
export const pauseMigrateAtStep = (conn, step) => set(primaryOf(conn), recipientPoint(step), "alwaysOn");
export const unpauseMigrateAtStep = (conn, step) => set(primaryOf(conn), recipientPoint(step), "off");
export const waitForMigrateStep = (conn, step) => waitFor(primaryOf(conn), recipientPoint(step));
// Lets a migration go on from the step it is stopped at to another one.
export function proceedToMoveChunkStep(conn, from, to) {
    pauseMoveChunkAtStep(conn, to);
    unpauseMoveChunkAtStep(conn, from);
    waitForMoveChunkStep(conn, to);
}
export function proceedToMigrateStep(conn, from, to) {
    pauseMigrateAtStep(conn, to);
    unpauseMigrateAtStep(conn, from);
    waitForMigrateStep(conn, to);
}
// Runs `fn` while the recipient has cloned and the donor still collects modifications.
export function runCommandDuringTransferMods(mongos, staticMongod, ns, find, bounds, fromShard, toShard, fn) {
    pauseMigrateAtStep(toShard, migrateStepNames.cloned);
    const join = moveChunkParallel(staticMongod, mongos.host, find, bounds, ns, toShard.shardName);
    waitForMigrateStep(toShard, migrateStepNames.cloned);
    fn();
    unpauseMigrateAtStep(toShard, migrateStepNames.cloned);
    join();
}
export function killRunningMoveChunk(admin) {
    const { inprog } = assert.commandWorked(admin.currentOp({ desc: /^moveChunk/i }));
    assert.gt(inprog.length, 0, "no migration runs");
    inprog.forEach((op) => admin.killOp(op.opid));
}
