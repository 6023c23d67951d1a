/**
 * The primary goes in three ways: it steps down, it is killed, it loses sight of a majority. Another takes over each time, no
 * acknowledged write is lost, and who comes back follows.
 * It fails if nobody takes over, if two accept writes, or if a write that a majority had is gone.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
let primary = rst.getPrimary();
let term = assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).term;
const expected = [];
function write(node, id) {
    assert.commandWorked(node.getDB("test").runCommand(
        {insert: "c", documents: [{_id: id}], writeConcern: {w: "majority", wtimeout: 60000}}));
    expected.push(id);
}
function next(old) {
    let found;
    assert.soon(() => {
        found = rst.getPrimary();
        return found.host !== old.host;
    }, "nobody took over");
    const status = assert.commandWorked(found.adminCommand({replSetGetStatus: 1}));
    assert.gt(status.term, term);
    term = status.term;
    const ids = found.getDB("test").c.find().sort({_id: 1}).toArray().map((d) => d._id);
    assert.eq(expected, ids.filter((id) => expected.includes(id)), "an acknowledged write is gone");
    return found;
}

// A step-down hands over.
write(primary, 1);
rst.awaitReplication();
assert.commandWorked(primary.adminCommand({replSetStepDown: 30}));
assert.commandFailedWithCode(primary.getDB("test").runCommand({insert: "c", documents: [{_id: 99}]}), 10107);
primary = next(primary);
write(primary, 2);

// A killed primary is replaced, and comes back as a secondary.
const killed = rst.getNodeId(primary);
rst.stop(killed, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
primary = next({host: rst.nodeList()[killed]});
write(primary, 3);
rst.start(killed, {}, true);
rst.awaitSecondaryNodes();
write(primary, 4);
rst.awaitReplication();
const back = rst.nodes[killed];
back.setSecondaryOk();
assert.eq(expected, back.getDB("test").c.find().sort({_id: 1}).toArray().map((d) => d._id));

// A primary that sees no majority steps down by itself.
const others = [0, 1, 2].filter((id) => id !== rst.getNodeId(primary));
others.forEach((id) => rst.stop(id));
assert.soon(() => !primary.adminCommand({hello: 1}).isWritablePrimary, "a primary without a majority goes on");
assert.commandFailedWithCode(primary.getDB("test").runCommand({insert: "c", documents: [{_id: 98}]}), 10107);
others.forEach((id) => rst.start(id, {}, true));
primary = rst.getPrimary();
write(primary, 5);
rst.awaitReplication();
rst.checkReplicatedDataHashes();
rst.stopSet();
