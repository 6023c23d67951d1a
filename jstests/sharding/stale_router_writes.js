/**
 * A write of a router that has not heard of a migration must land on the new owner, and only there.
 * It fails if a shard takes a write for a range it gave away, or statements are repeated or lost when a router retries.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const mover = st.s0;
const ns = "stale.c";
assert.commandWorked(mover.adminCommand({enableSharding: "stale", primaryShard: first}));
assert.commandWorked(mover.adminCommand({shardCollection: ns, key: {x: 1}}));
assert.commandWorked(mover.adminCommand({split: ns, middle: {x: 0}}));
const coll = st.s1.getCollection(ns);
const shardOf = {[first]: st.shard0, [second]: st.shard1};

let owner = first;
function move() {
    owner = owner === first ? second : first;
    assert.commandWorked(mover.adminCommand(
        {moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: owner, waitForDelete: true}));
}
function heldByOwnerOnly(filter, n) {
    for (const [name, shard] of Object.entries(shardOf)) {
        assert.eq(name === owner ? n : 0, shard.getCollection(ns).find(filter).itcount(), `${name} ${tojson(filter)}`);
    }
}

coll.find().itcount();
move();
assert.commandWorked(coll.insert({_id: "a", x: 1, n: 0}));
heldByOwnerOnly({_id: "a"}, 1);

move();
const many = [];
for (let i = 0; i < 50; i++) {
    many.push({_id: i, x: i - 25, n: 0});
}
assert.commandWorked(coll.insert(many));
assert.eq(51, coll.find().itcount());
heldByOwnerOnly({x: {$gte: 0}}, 26);

move();
assert.eq(1, assert.commandWorked(coll.updateOne({x: 5}, {$inc: {n: 1}})).modifiedCount);
assert.eq(1, coll.findOne({x: 5}).n);

move();
assert.eq(51, assert.commandWorked(coll.updateMany({}, {$inc: {n: 1}})).modifiedCount);
assert.eq(51, coll.find({n: {$gte: 1}}).itcount());
assert.eq(1, coll.find({n: 2}).itcount(), "an update repeated on a shard would have counted twice");

move();
assert.eq(1, coll.findAndModify({query: {x: 6}, update: {$inc: {n: 1}}}).n);
assert.eq(2, coll.findOne({x: 6}).n);

move();
const bulk = coll.initializeOrderedBulkOp();
bulk.insert({_id: "b", x: 100});
bulk.find({x: 100}).updateOne({$set: {n: 9}});
bulk.find({x: -20}).updateOne({$set: {n: 9}});
bulk.find({x: 7}).deleteOne();
bulk.find({x: 101}).upsert().updateOne({$set: {n: 9}});
const result = bulk.execute();
assert.eq([1, 2, 1, 1], [result.nInserted, result.nModified, result.nRemoved, result.nUpserted]);
assert.eq(3, coll.find({n: 9}).itcount());

move();
assert.eq(1, assert.commandWorked(coll.deleteOne({x: 100})).deletedCount);
move();
const left = coll.find({x: {$gte: 0}}).itcount();
assert.eq(left, assert.commandWorked(coll.deleteMany({x: {$gte: 0}})).deletedCount);
heldByOwnerOnly({x: {$gte: 0}}, 0);

// Index creation and drops by a router that knows the old owners.
move();
assert.commandWorked(coll.createIndex({n: 1}));
assert(shardOf[owner].getCollection(ns).getIndexes().some((index) => index.name === "n_1"));
st.stop();
