/**
 * Migrations of a collection can be forbidden, by hand and by the balancer's noBalance, and allowed again.
 * It fails if a forbidden migration is done, or the flag stays in the metadata when migrations are allowed.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, collectionEntry, freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "set_allow_migrations", {x: 1}, [{x: 0}], [first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
assert.commandWorked(coll.insert([{x: -1}, {x: 1}]));
const move = (to) => db.adminCommand({moveRange: ns, min: {x: 0}, max: {x: MaxKey}, toShard: to, waitForDelete: true});
const version = () => assert.commandWorked(db.adminCommand({getShardVersion: ns})).version;

const before = version();
assert.commandWorked(db.adminCommand({setAllowMigrations: ns, allowMigrations: false}));
assert.eq(false, collectionEntry(coll).permitMigrations);
assert.commandWorked(db.adminCommand({flushRouterConfig: ns}));
assert.gt(bsonWoCompare({v: version()}, {v: before}), 0, "shards must learn of it");
assert.commandFailedWithCode(move(second), 117);
assert.commandFailedWithCode(db.adminCommand({moveChunk: ns, find: {x: 1}, to: second}), 117);
assert.eq([first, first], chunksOf(coll).map((c) => c.shard));

// Reads, writes and splits go on.
assert.eq(2, coll.find().itcount());
assert.commandWorked(coll.insert({x: 2}));
assert.commandWorked(db.adminCommand({split: ns, middle: {x: 5}}));

assert.commandWorked(db.adminCommand({setAllowMigrations: ns, allowMigrations: true}));
assert(!("permitMigrations" in collectionEntry(coll)), tojson(collectionEntry(coll)));
assert.commandWorked(db.adminCommand({moveRange: ns, min: {x: 0}, max: {x: 5}, toShard: second, waitForDelete: true}));
assert.eq([first, second, first], chunksOf(coll).map((c) => c.shard));
assert.eq(3, coll.find().itcount());

// Errors.
assert.commandFailedWithCode(db.adminCommand({setAllowMigrations: ns}), 40414);
assert.commandFailedWithCode(db.adminCommand({setAllowMigrations: ns, allowMigrations: "no"}), 14);
assert.commandWorked(testDB.plain.insert({x: 1}));
assert.commandFailedWithCode(
    db.adminCommand({setAllowMigrations: testDB.plain.getFullName(), allowMigrations: false}), 118);
assert.commandWorked(testDB.dropDatabase());
