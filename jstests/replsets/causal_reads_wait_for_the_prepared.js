/**
 * A read of a time at which something was prepared waits for its outcome, on the primary and on secondaries: a causal read, a
 * snapshot, a linearizable read. Its reader may have seen another shard's part of the same transaction. A read that names no
 * time, and one of another collection, see what is committed; one of a view waits as what it reads does. A step-down is not held
 * up by those that wait, and the table of sessions cannot be dropped meanwhile.
 * It fails if a reader sees half of a transaction over several shards, or one moment in two ways.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
rst.nodes.forEach((node) => node.setSecondaryOk());
let primary = rst.getPrimary();
const majority = {w: "majority", wtimeout: 60000};
for (const db of ["test", "other"]) {
    assert.commandWorked(primary.getDB(db).runCommand({insert: "c", documents: [{_id: 1, n: 0}], writeConcern: majority}));
}
assert.commandWorked(primary.getDB("test").runCommand({insert: "beside", documents: [{_id: 1, n: 1}], writeConcern: majority}));
assert.commandWorked(primary.getDB("test").runCommand({create: "view", viewOn: "c", pipeline: [], writeConcern: majority}));

let number = 0;
/** Prepares a transaction that sets `n`; returns how to commit it, and a time after its prepare. */
function prepare(n) {
    const fields = {lsid: {id: UUID()}, txnNumber: NumberLong(++number), autocommit: false};
    assert.commandWorked(primary.getDB("test").runCommand(Object.assign(
        {update: "c", updates: [{q: {_id: 1}, u: {$set: {n: n}}}], startTransaction: true}, fields)));
    const say = (command) => assert.commandWorked(
        primary.adminCommand(Object.assign(command, {writeConcern: majority}, fields)));
    const at = say({prepareTransaction: 1}).prepareTimestamp;
    const later = assert.commandWorked(primary.getDB("other").runCommand(
        {update: "c", updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}], writeConcern: majority})).operationTime;
    return {later: later, commit: () => say({commitTransaction: 1, commitTimestamp: at})};
}
function read(node, readConcern, db, collection) {
    return node.getDB(db || "test").runCommand({find: collection || "c", readConcern: readConcern, maxTimeMS: 500,
                                                $readPreference: {mode: "secondaryPreferred"}});
}
const first = (reply) => assert.commandWorked(reply).cursor.firstBatch[0].n;

const one = prepare(1);
const causal = {level: "local", afterClusterTime: one.later};
const moment = {level: "snapshot", atClusterTime: one.later};
for (const node of rst.nodes) {
    const where = node.host === primary.host ? "the primary" : "a secondary";
    for (const concern of [causal, {level: "majority", afterClusterTime: one.later}, moment, {level: "snapshot"}]) {
        assert.commandFailedWithCode(read(node, concern), 50, `${where} ${tojson(concern)}`);
    }
    const counted = {count: "c", query: {n: 1}, readConcern: causal, maxTimeMS: 500};
    assert.commandFailedWithCode(node.getDB("test").runCommand(counted), 50);
    for (const concern of [{level: "local"}, {level: "majority"}, {level: "available"}]) {
        assert.eq(0, first(read(node, concern)), `${where} ${tojson(concern)}`);
    }
    assert.lte(1, first(read(node, causal, "other")), where);
    for (const concern of [causal, {level: "majority", afterClusterTime: one.later}]) {
        assert.eq(1, first(read(node, concern, "test", "beside")), `${where} ${tojson(concern)}`);
        assert.commandFailedWithCode(read(node, concern, "test", "view"), 50, `${where} ${tojson(concern)}`);
    }
}
const dropped = primary.getDB("config").runCommand({drop: "transactions"});
assert.commandFailedWithCode(dropped, ErrorCodes.PreparedTransactionInProgress);
assert.commandFailedWithCode(read(primary, {level: "linearizable"}), 50);

// Those who wait hear of the commit, also on a member that has stepped down meanwhile.
const reads = rst.nodes.map((node) => startParallelShell(funWithArgs((causal, host) => {
    const reply = assert.commandWorked(db.getSiblingDB("test").runCommand(
        {find: "c", readConcern: causal, maxTimeMS: 60000, $readPreference: {mode: "secondaryPreferred"}}));
    assert.eq(1, reply.cursor.firstBatch[0].n, host);
}, causal, node.host), node.port));
rst.nodes.forEach((node) => assert.soon(() =>
    node.getDB("admin").aggregate([{$currentOp: {}}, {$match: {"command.find": "c"}}]).itcount() === 1));
const old = primary.host, began = Date.now();
assert.commandWorked(primary.adminCommand({replSetStepDown: 30}));
assert.lt(Date.now() - began, 10000, "readers hold up the step-down");
assert.soon(() => {
    primary = rst.getPrimary();
    return primary.host !== old;
});
one.commit();
reads.forEach((join) => join());
rst.awaitReplication();
rst.nodes.forEach((node) => assert.eq([1, 1], [first(read(node, causal)), first(read(node, moment))], node.host));
rst.stopSet();
