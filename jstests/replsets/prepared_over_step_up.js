/**
 * What a primary has prepared is prepared on its successor: the coordinator's decision is carried out there, its locks hold,
 * and a member that was started again or copied everything meanwhile follows. A shard's writes would be lost otherwise.
 * It fails if a new primary does not know the transaction, if others can change what it holds, or if members differ afterwards.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
let primary = rst.getPrimary();
const majority = {w: "majority", wtimeout: 60000};
assert.commandWorked(primary.getDB("test").runCommand(
    {insert: "c", documents: [{_id: 1, n: 0}, {_id: 2, n: 0}, {_id: 3, n: 0}], writeConcern: majority}));

let number = 0;
/** Updates a document in a transaction; returns how to prepare and to decide it, wherever the primary is. */
function begin(id) {
    const fields = {lsid: {id: UUID()}, txnNumber: NumberLong(++number), autocommit: false};
    assert.commandWorked(primary.getDB("test").runCommand(Object.assign(
        {update: "c", updates: [{q: {_id: id}, u: {$inc: {n: 1}}}], startTransaction: true}, fields)));
    const say = (command) => assert.commandWorked(
        primary.adminCommand(Object.assign(command, {writeConcern: majority}, fields)));
    let at;
    const own = {
        prepare: () => { at = say({prepareTransaction: 1}).prepareTimestamp; return own; },
        again: () => assert.eq(at, say({prepareTransaction: 1}).prepareTimestamp),
        commit: () => say({commitTransaction: 1, commitTimestamp: at}),
        abort: () => say({abortTransaction: 1}),
    };
    return own;
}
function held(id) {
    const reply = primary.getDB("test").runCommand({update: "c", updates: [{q: {_id: id}, u: {$inc: {n: 10}}}], maxTimeMS: 300});
    assert.commandFailedWithCode(reply, 50, "what is prepared was changed");
}
function values(node) {
    node.setSecondaryOk();
    return node.getDB("test").c.find().sort({_id: 1}).toArray().map((d) => d.n);
}
function successor(old) {
    assert.soon(() => {
        primary = rst.getPrimary();
        return primary.host !== old;
    });
}

// The primary is killed.
const first = begin(1), second = begin(2);
[first, second].forEach((t) => t.prepare());
assert.eq([0, 0, 0], values(primary));
let id = rst.getNodeId(primary);
rst.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL, skipValidation: true});
successor(rst.nodeList()[id]);
assert.eq([0, 0, 0], values(primary));
held(1);
first.again();
held(2);
first.commit();
second.abort();
assert.eq([1, 0, 0], values(primary));

// The old one is back and follows; a secondary is started again; then the primary steps down.
rst.start(id, {}, true);
rst.awaitSecondaryNodes();
const third = begin(3).prepare();
id = rst.nodes.findIndex((node) => node.host !== primary.host);
assert.commandWorked(rst.nodes[id].adminCommand({fsync: 1}));
rst.restart(id, {skipValidation: true});
rst.awaitSecondaryNodes();
rst.awaitReplication();
const old = primary.host;
assert.commandWorked(primary.adminCommand({replSetStepDown: 30}));
successor(old);
held(3);
third.commit();
assert.eq([1, 0, 1], values(primary));
rst.awaitReplication();
rst.nodes.forEach((node) => assert.eq([1, 0, 1], values(node), node.host));

// A member that copies everything while something is prepared knows it too.
const fourth = begin(1).prepare();
id = rst.nodes.findIndex((node) => node.host !== primary.host);
rst.stop(id, undefined, {skipValidation: true});
resetDbpath(rst.getDbPath(id));
rst.start(id, {}, false);
rst.awaitSecondaryNodes();
rst.awaitReplication();
rst.stepUp(rst.nodes[id]);
assert.soon(() => {
    primary = rst.getPrimary();
    return primary.host === rst.nodes[id].host;
});
held(1);
fourth.commit();
assert.eq([2, 0, 1], values(primary));
rst.awaitReplication();
rst.checkReplicatedDataHashes();
rst.stopSet();
