/**
 * An empty collection sharded by a hash is spread over all shards at once, evenly, as many chunks as asked.
 * It fails if all chunks begin on one shard, the hash space is divided unevenly, or a filled collection is spread, too.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const names = shardNames(db);
const testDB = freshDatabase(db, "hashed_initial_chunks", names[0]);
function shard(name, fields) {
    return db.adminCommand(Object.assign({shardCollection: `${testDB.getName()}.${name}`}, fields));
}
function perShard(coll) {
    const counts = {};
    names.forEach((name) => counts[name] = 0);
    chunksOf(coll).forEach((chunk) => counts[chunk.shard]++);
    return names.map((name) => counts[name]);
}

// One chunk for each shard.
assert.commandWorked(shard("one", {key: {x: "hashed"}}));
assert.eq(names.map(() => 1), perShard(testDB.one));
const chunks = chunksOf(testDB.one);
assert.eq({x: MinKey}, chunks[0].min);
assert.eq({x: MaxKey}, chunks[chunks.length - 1].max);
chunks.slice(1).forEach((chunk) => assert(chunk.min.x instanceof NumberLong, tojson(chunk.min)));
if (names.length === 2) {
    assert.eq(NumberLong(0), chunks[1].min.x);
}

// As many as asked for, evenly.
assert.commandWorked(shard("ten", {key: {x: "hashed"}, numInitialChunks: 5 * names.length}));
assert.eq(names.map(() => 5), perShard(testDB.ten));
const bounds = chunksOf(testDB.ten).slice(1).map((c) => Number(c.min.x));
const gap = bounds[1] - bounds[0];
for (let i = 1; i < bounds.length; i++) {
    assert.lt(Math.abs(bounds[i] - bounds[i - 1] - gap) / gap, 1e-9);
}

// A hashed prefix spreads, a hashed suffix does not.
assert.commandWorked(shard("prefix", {key: {x: "hashed", y: 1}}));
assert.eq(names.map(() => 1), perShard(testDB.prefix));
assert.eq({x: MinKey, y: MinKey}, chunksOf(testDB.prefix)[0].min);
assert.commandWorked(shard("suffix", {key: {y: 1, x: "hashed"}}));
assert.eq(1, chunksOf(testDB.suffix).length);

// What holds documents begins as one chunk where it is.
assert.commandWorked(testDB.filled.insert({x: 1}));
assert.commandWorked(testDB.filled.createIndex({x: "hashed"}));
assert.commandWorked(shard("filled", {key: {x: "hashed"}}));
assert.eq([names[0]], chunksOf(testDB.filled).map((c) => c.shard));

// Even load.
const documents = [];
for (let i = 0; i < 1000; i++) {
    documents.push({x: i});
}
assert.commandWorked(testDB.one.insert(documents));
const stats = testDB.one.stats();
for (const name of names) {
    assert.gt(stats.shards[name].count, 1000 / names.length * 0.8);
}

// Refused: nonsense numbers, and ranges.
assert.commandFailedWithCode(shard("r", {key: {x: 1}, numInitialChunks: 4}), 72);
assert.commandFailedWithCode(shard("n", {key: {x: "hashed"}, numInitialChunks: -1}), [2, 51024, 72]);
assert.commandFailedWithCode(shard("n", {key: {x: "hashed"}, numInitialChunks: 10 * 1000 * 1000}), 72);
assert.commandFailedWithCode(shard("u", {key: {x: "hashed"}, unique: true}), 72);
assert.commandWorked(testDB.dropDatabase());
