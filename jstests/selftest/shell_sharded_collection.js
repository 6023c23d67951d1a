/**
 * What the shell computes about a sharded collection itself: its distribution, its statistics, its consistency.
 * Fails when a share is counted for the wrong shard, or a helper's command does not reach the router.
 *
 * @tags: [requires_sharding]
 */
const own = db.getSiblingDB(jsTestName());
own.dropDatabase();
const shards = db.getSiblingDB("config").shards.find().sort({_id: 1}).toArray().map(shard => shard._id);
assert.gte(shards.length, 2);
assert.commandWorked(db.adminCommand({enableSharding: own.getName(), primaryShard: shards[0]}));
const coll = own.c;
const printed = print.captureAllOutput(() => own.unsharded.getShardDistribution());
assert.eq(undefined, printed.result);
assert.includes(printed.output.join("\n"), "is not sharded");

assert.commandWorked(db.adminCommand({shardCollection: coll.getFullName(), key: {x: 1}}));
for (const middle of [0, 10]) assert.commandWorked(db.adminCommand({split: coll.getFullName(), middle: {x: middle}}));
assert.commandWorked(db.adminCommand({moveChunk: coll.getFullName(), find: {x: 0}, to: shards[1], _waitForDelete: true}));
for (let x = -10; x < 20; x++) assert.commandWorked(coll.insert({_id: x, x}));

const {result: distribution, output} = print.captureAllOutput(() => coll.getShardDistribution());
assert.eq(2, distribution["Shard " + shards[0]].chunks);
assert.eq(1, distribution["Shard " + shards[1]].chunks);
assert.eq(20, distribution["Shard " + shards[0]].docs);
assert.eq(10, distribution["Shard " + shards[1]].docs);
assert.eq({docs: 30, chunks: 3}, {docs: distribution.Totals.docs, chunks: distribution.Totals.chunks});
assert.includes(output.join("\n"), "Shard " + shards[0] + " contains");

const stats = coll.stats({indexDetails: true});
assert.eq(true, stats.sharded);
assert.eq(30, Number(stats.count));
assert.sameMembers(shards.slice(0, 2), Object.keys(stats.shards));
assert.eq(undefined, coll.stats().shards[shards[0]].indexDetails);
assert.commandWorked(coll.getShardVersion());
assert.eq([], coll.checkMetadataConsistency().toArray());
assert.eq([], own.checkMetadataConsistency().toArray());
assert.eq(2, coll.latencyStats().itcount());

assert.commandWorked(coll.disableBalancing());
assert.eq(true, db.getSiblingDB("config").collections.findOne({_id: coll.getFullName()}).noBalance);
assert.commandWorked(coll.enableBalancing());
assert.eq(false, db.getSiblingDB("config").collections.findOne({_id: coll.getFullName()}).noBalance);
assert.includes(print.captureAllOutput(() => own.printShardingStatus()).output.join("\n"), coll.getFullName());
assert(coll.drop());
