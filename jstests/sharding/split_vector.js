/**
 * splitVector and autoSplitVector find keys that divide a range into parts of a size; splits by median, tools and the balancer rely on
 * them. It fails if a point is no key of the data, points are out of order or equal, a limit is ignored, or a document counts as
 * often as it has entries in the index.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first] = shardNames(db);
const testDB = freshDatabase(db, "split_vector", first);
const coll = testDB.c;
const ns = coll.getFullName();
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
const pad = "p".repeat(10 * 1024);
for (let x = 0; x < 400; x++) {
    assert.commandWorked(coll.insert({x: x, pad: pad}));
}
const shard = shardConnection(db, first);
function vector(fields) {
    return shard.adminCommand(Object.assign({splitVector: ns, keyPattern: {x: 1}}, fields));
}
function keys(fields) {
    const found = assert.commandWorked(vector(fields)).splitKeys;
    for (let i = 1; i < found.length; i++) {
        assert.lt(found[i - 1].x, found[i].x);
    }
    found.forEach((key) => assert.eq(["x"], Object.keys(key)));
    return found.map((key) => key.x);
}

// Parts of half the size: points at about every 51 documents.
let points = keys({maxChunkSizeBytes: 1024 * 1024});
assert.gte(points.length, 6, tojson(points));
assert.lte(points.length, 9, tojson(points));
points = keys({maxChunkSize: 1});
assert.gte(points.length, 6, tojson(points));

// The median.
points = keys({force: true});
assert.eq(1, points.length);
assert(points[0] > 150 && points[0] < 250, tojson(points));

// By number of objects, and with a limit on points.
points = keys({maxChunkObjects: 100, maxChunkSizeBytes: 1024 * 1024 * 1024});
assert.gte(points.length, 3, tojson(points));
assert.eq(2, keys({maxChunkSizeBytes: 1024 * 1024, maxSplitPoints: 2}).length);

// Within bounds.
points = keys({min: {x: 100}, max: {x: 200}, maxChunkSizeBytes: 512 * 1024});
assert(points.every((x) => x > 100 && x < 200), tojson(points));
assert.gt(points.length, 0);

// A document counts once, however many entries the index has for it.
const tagged = testDB.tagged;
assert.commandWorked(tagged.createIndex({x: 1, tags: 1}));
assert.commandWorked(db.adminCommand({shardCollection: tagged.getFullName(), key: {x: 1}}));
for (let x = 0; x < 100; x++) {
    assert.commandWorked(tagged.insert({x: x, tags: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}));
}
const counted = {splitVector: tagged.getFullName(), maxChunkObjects: 40, maxChunkSizeBytes: 1024 * 1024 * 1024};
points = keys(counted).map(Number);
assert.eq([40, 80], points);
points = keys({splitVector: tagged.getFullName(), force: true}).map(Number);
assert.eq([50], points);

// Too little data: nothing to split.
assert.eq([], keys({maxChunkSizeBytes: 1024 * 1024 * 1024}));

// By the documents' real sizes, in pieces of the size itself, however uneven they are.
const uneven = testDB.uneven;
assert.commandWorked(db.adminCommand({shardCollection: uneven.getFullName(), key: {x: 1}}));
for (let x = 0; x < 60; x++) {
    assert.commandWorked(uneven.insert({x: x, pad: "p".repeat(x < 50 ? 10 : 100 * 1024)}));
}
const pieces = (fields) => assert.commandWorked(shard.getDB(testDB.getName()).runCommand(Object.assign(
    {autoSplitVector: "uneven", keyPattern: {x: 1}, min: {x: MinKey}, max: {x: MaxKey}, maxChunkSizeBytes: 256 * 1024}, fields)));
points = pieces({}).splitKeys.map((key) => key.x);
assert.eq(false, pieces({}).continuation);
const inPiece = (from, to) => uneven.find({x: {$gte: from, $lt: to}}).toArray().reduce((sum, d) => sum + Object.bsonsize(d), 0);
[MinKey, ...points].forEach((from, i) => assert.lte(inPiece(from, i < points.length ? points[i] : MaxKey), 256 * 1024, tojson(points)));
assert(points.length >= 4 && points.every((x) => x >= 50), tojson(points));
assert.eq([], pieces({maxChunkSizeBytes: 64 * 1024 * 1024}).splitKeys);
assert.eq([], pieces({max: {x: 50}}).splitKeys);
for (const fields of [{keyPattern: {absent: 1}}, {maxChunkSizeBytes: 0}, {min: {y: 1}}, {autoSplitVector: "absent"}]) {
    assert.commandFailed(shard.getDB(testDB.getName()).runCommand(Object.assign(
        {autoSplitVector: "uneven", keyPattern: {x: 1}, min: {x: MinKey}, max: {x: MaxKey}, maxChunkSizeBytes: 1024}, fields)), tojson(fields));
}

// Through a router, of what lies on one shard; a router is asked on the collection's database.
const whole = testDB.whole;
assert.commandWorked(whole.insert(Array.from({length: 10}, (_, x) => ({x: x}))));
assert.commandWorked(whole.createIndex({x: 1}));
const routed = {splitVector: whole.getFullName(), keyPattern: {x: 1}, force: true};
assert.eq([5], assert.commandWorked(testDB.runCommand(routed)).splitKeys.map((key) => Number(key.x)));
assert.commandFailedWithCode(db.adminCommand(routed), ErrorCodes.IllegalOperation);
assert.commandFailedWithCode(testDB.runCommand({splitVector: ns, keyPattern: {x: 1}, force: true}), ErrorCodes.IllegalOperation);

// Refused.
assert.commandFailed(shard.adminCommand({splitVector: ns, maxChunkSizeBytes: 1024 * 1024}));
assert.commandFailed(vector({min: {x: 0}, maxChunkSizeBytes: 1024 * 1024}));
assert.commandFailed(vector({}));
assert.commandFailed(vector({keyPattern: {absent: 1}, maxChunkSizeBytes: 1024 * 1024}));
assert.commandFailed(shard.adminCommand({splitVector: `${testDB.getName()}.absent`, keyPattern: {x: 1}, force: true}));
assert.commandWorked(testDB.dropDatabase());
