/**
 * analyzeShardKey tells what a shard key would be like, on a set and through a router: how many keys there are, the most common, their order.
 * It fails if keys are counted wrongly, orphans count, or a key without an index, an empty collection or a view is analysed.
 *
 * @tags: [requires_replication]
 */
const testDB = db.getSiblingDB("analyze_shard_key");
assert.commandWorked(testDB.dropDatabase());
const coll = testDB.c;
const ns = coll.getFullName();
const run = (key, more) => db.adminCommand(Object.assign({analyzeShardKey: ns, key}, more));
assert.commandFailedWithCode(run({a: 1}), ErrorCodes.NamespaceNotFound);
assert.commandWorked(coll.createIndexes([{a: 1, b: 1}, {u: 1}, {"n.m": 1}]));
assert.commandWorked(coll.createIndex({h: "hashed"}));
assert.commandFailedWithCode(run({a: 1}), ErrorCodes.IllegalOperation);
// 200 documents, of which every fourth has a = 0; b is different in each, and comes in order; u runs to and fro.
const documents = [];
for (let i = 0; i < 200; i++) {
    documents.push({_id: i, a: i % 4 ? 1 + i % 50 : 0, b: i, u: (i * 37) % 200, n: i % 2 ? {m: 1} : {}, h: i});
}
assert.commandWorked(coll.insert(documents));
const metrics = (key, more) => assert.commandWorked(run(key, more)).keyCharacteristics;

const a = metrics({a: 1});
assert.eq([200, 200, false], [a.numDocsTotal, a.numDocsSampled, a.isUnique].map((v) => v === false ? v : Number(v)), tojson(a));
assert.gt(a.avgDocSizeBytes, 40);
assert.eq(5, a.mostCommonValues.length);
assert.eq([{a: 0}, 50], [a.mostCommonValues[0].value, Number(a.mostCommonValues[0].frequency)]);
assert.eq(coll.distinct("a").length, Number(a.numDistinctValues));

const id = metrics({_id: 1});
assert.eq([true, 200], [id.isUnique, Number(id.numDistinctValues)]);
assert.eq("monotonic", id.monotonicity.type, tojson(id));
assert.gt(id.monotonicity.recordIdCorrelationCoefficient, 0.9);
assert.eq("not monotonic", metrics({u: 1}).monotonicity.type);
assert.eq("not monotonic", metrics({h: "hashed"}).monotonicity.type);
const nested = metrics({"n.m": 1}).mostCommonValues;
assert.eq([100, 100], nested.map((v) => Number(v.frequency)));
assert.eq([[null], [1]].map(tojson), nested.map((v) => tojson(Object.values(v.value))));
assert.eq(200, Number(metrics({a: 1, b: 1}).numDistinctValues));
assert.eq(50, Number(metrics({a: 1}, {sampleSize: 50}).numDocsSampled));

// Nothing is sampled of queries; a key that no index supports has no characteristics.
const reply = assert.commandWorked(run({a: 1}, {keyCharacteristics: false}));
assert(!("keyCharacteristics" in reply));
assert.eq([0, 0], [reply.readDistribution.sampleSize.total, reply.writeDistribution.sampleSize.total].map(Number));
assert(!("readDistribution" in assert.commandWorked(run({a: 1}, {readWriteDistribution: false}))));
assert(!("keyCharacteristics" in assert.commandWorked(run({b: 1}))));

for (const [code, key, more] of [
         [2, {}], [2, {a: "text"}], [14, 1], [72, {a: 1}, {keyCharacteristics: false, readWriteDistribution: false}],
         [72, {a: 1}, {sampleSize: 1, sampleRate: 0.5}], [2, {a: 1}, {sampleRate: 2}], [2, {a: 1}, {sampleSize: 0}], [40415, {a: 1}, {more: 1}],
]) {
    assert.commandFailedWithCode(run(key, more), code, () => tojson([key, more]));
}
assert.commandWorked(testDB.createView("view", "c", []));
assert.commandFailedWithCode(db.adminCommand({analyzeShardKey: testDB.view.getFullName(), key: {a: 1}}), ErrorCodes.CommandNotSupportedOnView);
assert.commandFailedWithCode(db.adminCommand({analyzeShardKey: "config.shards", key: {a: 1}}), ErrorCodes.IllegalOperation);
assert.commandWorked(testDB.dropDatabase());
