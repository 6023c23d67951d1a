/**
 * Each time a node becomes primary its term and election id grow, which is how drivers tell an old primary from a new one.
 * It fails if a restart or a step-down leaves the term as it was, or the ids do not order as the terms do.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const state = () => {
    const primary = rst.getPrimary();
    const hello = assert.commandWorked(primary.adminCommand({hello: 1}));
    const status = assert.commandWorked(primary.adminCommand({replSetGetStatus: 1}));
    assert.eq(Number(status.term), parseInt(hello.electionId.str.substring(8), 16));
    assert.eq(Number(status.term), Number(status.members[0].configTerm));
    return {term: Number(status.term), id: hello.electionId, process: hello.topologyVersion.processId};
};
const grown = (before, after) => {
    assert.gt(after.term, before.term);
    assert.gt(bsonWoCompare({i: after.id}, {i: before.id}), 0);
};

let last = state();
assert.eq(1, last.term);
for (const signal of [15, 9]) {
    const options = signal === 9 ? {allowedExitCode: MongoRunner.EXIT_SIGKILL} : {};
    rst.stop(0, signal, options, {forRestart: true});
    rst.start(0, {}, true);
    const now = state();
    grown(last, now);
    assert.neq(last.process, now.process);
    last = now;
}

// Stepping down and up.
assert.commandWorked(rst.getPrimary().adminCommand({replSetStepDown: 1, force: true}));
const again = state();
grown(last, again);
assert.eq(last.process, again.process);

// Entries carry the term in which they were written; each term begins with a note.
const oplog = rst.getPrimary().getDB("local").getCollection("oplog.rs");
assert.commandWorked(rst.getPrimary().getDB("test").c.insert({_id: 1}));
const newest = oplog.find().sort({$natural: -1}).limit(1).next();
assert.eq(again.term, Number(newest.t));
const terms = oplog.find({op: "n", "o.msg": "new primary"}).toArray().map((e) => Number(e.t));
assert.contains(again.term, terms);
assert.eq(terms.slice().sort((a, b) => a - b), terms);

// The config is written in the new term as well.
assert.eq(again.term, Number(rst.getPrimary().adminCommand({replSetGetConfig: 1}).config.term));
rst.stopSet();
