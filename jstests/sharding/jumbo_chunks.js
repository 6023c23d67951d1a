/**
 * A range with over twice the data that a chunk may have is not moved unless forced; a mark on its chunk can be cleared.
 * It fails if such a range moves unforced, a user's failed move marks the chunk, or a mark survives its clearing or move.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, configConnection, freshCollection, heldBy, pauseBalancer, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const resume = pauseBalancer(db);
const coll = freshCollection(db, "jumbo_chunks", {x: 1}, [{x: 5}, {x: 6}], [first, first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
assert.commandWorked(db.adminCommand({configureCollectionBalancing: ns, chunkSize: 1}));

// Three megabytes under one key: no split can help.
const pad = "p".repeat(64 * 1024);
for (let i = 0; i < 48; i++) {
    assert.commandWorked(coll.insert({_id: i, x: 5, pad: pad}));
}
const jumbo = () => chunksOf(coll).map((c) => !!c.jumbo);
assert.eq([false, false, false], jumbo());
const bounds = [{x: 5}, {x: 6}];
assert.commandFailedWithCode(db.adminCommand({moveChunk: ns, bounds: bounds, to: second}), 153);
assert.eq([false, false, false], jumbo(), "only the balancer marks");
const mark = () => assert.commandWorked(configConnection(db).getDB("config").chunks.update(
    {_id: chunksOf(coll)[1]._id}, {$set: {jumbo: true}}));
mark();
assert.eq([false, true, false], jumbo());
assert.eq(first, chunksOf(coll)[1].shard);

// The mark can be taken away, by a document or by bounds.
const version = chunksOf(coll)[1].lastmod;
assert.commandWorked(db.adminCommand({clearJumboFlag: ns, bounds: bounds}));
assert.eq([false, false, false], jumbo());
assert(!("jumbo" in chunksOf(coll)[1]), "the field goes, it does not become false");
assert.gt(bsonWoCompare({v: chunksOf(coll)[1].lastmod}, {v: version}), 0);
mark();
assert.commandWorked(db.adminCommand({clearJumboFlag: ns, find: {x: 5}}));
assert.eq([false, false, false], jumbo());
assert.commandFailed(db.adminCommand({clearJumboFlag: ns}));
assert.commandFailedWithCode(db.adminCommand({clearJumboFlag: ns, find: 5}), 14);
assert.commandFailed(db.adminCommand({clearJumboFlag: ns, bounds: [{x: 5}, {x: 7}]}));
assert.commandFailedWithCode(db.adminCommand({clearJumboFlag: `${testDB.getName()}.plain`, find: {x: 1}}), [26, 118]);

// It cannot be split: there is one key only.
assert.commandFailedWithCode(db.adminCommand({split: ns, find: {x: 5}}), 87);

// Forced, it moves.
mark();
assert.commandFailedWithCode(db.adminCommand({moveChunk: ns, find: {x: 5}, to: second}), 153);
assert.commandWorked(db.adminCommand({moveChunk: ns, bounds: bounds, to: second, forceJumbo: true, waitForDelete: true}));
assert.eq([false, false, false], jumbo(), "a chunk that moved is not jumbo any more");
assert.eq([0, 48], [heldBy(coll, first), heldBy(coll, second)]);
assert.eq(48, coll.find({x: 5}).itcount());

// moveRange with both bounds refuses in the same way.
assert.commandFailedWithCode(db.adminCommand({moveRange: ns, min: {x: 5}, max: {x: 6}, toShard: first}), 153);
assert.commandWorked(db.adminCommand(
    {moveRange: ns, min: {x: 5}, max: {x: 6}, toShard: first, forceJumbo: true, waitForDelete: true}));
assert.eq([48, 0], [heldBy(coll, first), heldBy(coll, second)]);

// A size of zero takes the collection's own limit away.
assert.commandWorked(db.adminCommand({configureCollectionBalancing: ns, chunkSize: 0}));
assert.commandWorked(db.adminCommand({moveChunk: ns, bounds: bounds, to: second, waitForDelete: true}));
assert.commandFailedWithCode(db.adminCommand({configureCollectionBalancing: ns, chunkSize: 1025}), 72);
assert.commandWorked(testDB.dropDatabase());
resume();
