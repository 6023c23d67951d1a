/**
 * How long a collection's reads, writes and commands take tells what it is used for.
 * Fails when an operation counts among others than its kind, a histogram does not add up, or counts outlive their collection.
 *
 * @tags: [
 *   # A collection that is dropped and made anew, as this test's, has its latencies on a node.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.latency_statistics;
coll.drop();
assert.commandWorked(coll.insert([...Array(5).keys()].map(i => ({_id: i, a: i}))));
const kinds = ["reads", "writes", "commands"];
const counts = () => {
    const stats = coll.aggregate([{$collStats: {latencyStats: {histograms: true}}}]).toArray()[0].latencyStats;
    return kinds.map(kind => {
        const sum = stats[kind].histogram.reduce((n, range) => n + Number(range.count), 0);
        assert.eq(Number(stats[kind].ops), sum, () => tojson(stats[kind]));
        return sum;
    });
};

/** `act` adds these reads, writes and commands, beside the read that asks. */
function adds(reads, writes, commands, act) {
    const before = counts();
    act();
    const after = counts();
    const risen = after.map((n, at) => n - before[at]);
    assert.eq([reads, writes, commands], [risen[0] - 1, risen[1], risen[2]], () => act.toString());
}
const run = command => assert.commandWorked(db.runCommand(command));
const name = coll.getName();
adds(0, 0, 0, () => {});
adds(0, 1, 0, () => coll.insert({_id: 5}));
adds(0, 1, 0, () => coll.update({_id: 5}, {$set: {b: 1}}));
adds(0, 1, 0, () => coll.remove({_id: 5}));
adds(0, 1, 0, () => coll.findAndModify({query: {_id: 1}, update: {$set: {b: 1}}}));
adds(3, 0, 0, () => coll.find().batchSize(2).itcount());
adds(1, 0, 0, () => coll.aggregate([{$group: {_id: null}}]).toArray());
adds(1, 0, 0, () => run({count: name}));
adds(1, 0, 0, () => coll.distinct("a"));
adds(0, 0, 1, () => coll.createIndex({a: 1}));
adds(0, 0, 1, () => run({listIndexes: name}));
adds(0, 0, 1, () => coll.dropIndex({a: 1}));
adds(0, 0, 1, () => run({explain: {find: name}}));
adds(0, 0, 1, () => run({collStats: name}));
adds(0, 0, 1, () => run({collMod: name, validator: {}}));
adds(0, 0, 1, () => run({dataSize: coll.getFullName()}));
adds(0, 0, 1, () => run({planCacheClear: name}));
adds(1, 0, 1, () => run({killCursors: name, cursors: [run({find: name, batchSize: 1}).cursor.id]}));

assert(coll.drop());
assert.commandWorked(db.createCollection(name));
assert.eq([0, 0], counts().slice(0, 2), "another collection has the name");
