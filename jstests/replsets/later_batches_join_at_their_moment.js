/**
 * A pipeline of level snapshot reads all it joins at one moment, however many batches its client takes to read it.
 * It fails if stages that run for a later batch read other collections as they are by then.
 *
 * @tags: [requires_replication]
 */
const name = jsTestName();
assert.commandWorked(db.dropDatabase());
assert.commandWorked(db[name].insert([1, 2, 3, 4].map((n) => ({_id: n}))));
assert.commandWorked(db.other.insert({_id: 1, n: 1}));

const stages = {
    lookup: [{$sort: {_id: 1}}, {$lookup: {from: "other", pipeline: [], as: "all"}}],
    graph: [{$sort: {_id: 1}}, {$graphLookup: {from: "other", startWith: 1, connectFromField: "x", connectToField: "n", as: "all"}}],
    union: [{$unionWith: {coll: "other"}}],
};
const readConcern = {level: "snapshot"};
const opened = Object.entries(stages).map(([kind, pipeline]) => {
    const command = {aggregate: name, pipeline, cursor: {batchSize: 1}, readConcern};
    return [kind, assert.commandWorked(db.runCommand(command)).cursor];
});
assert.commandWorked(db.other.insert({_id: 2, n: 1}));
for (const [kind, cursor] of opened) {
    assert.neq(0, cursor.id, kind);
    const more = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: name})).cursor.nextBatch;
    const all = cursor.firstBatch.concat(more);
    if (kind === "union") {
        assert.eq([1, 2, 3, 4, 1], all.map((d) => d._id), kind);
    } else {
        assert.eq([1, 1, 1, 1], all.map((d) => d.all.length), kind);
    }
}
