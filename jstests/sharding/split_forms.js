/**
 * A chunk is split at a given key, or at the median of the chunk that a document or bounds name.
 * It fails if a split point lands in another chunk, a median is no key of the data, or bad arguments are accepted.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const [first] = shardNames(db);
const testDB = freshDatabase(db, "split_forms", first);
const coll = testDB.c;
const ns = coll.getFullName();
assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
const points = () => chunksOf(coll).slice(1).map((c) => c.min.x);
const split = (fields) => db.adminCommand(Object.assign({split: ns}, fields));

assert.commandWorked(split({middle: {x: 100}}));
assert.commandWorked(split({middle: {x: 50}}));
assert.commandWorked(split({middle: {x: 200}}));
assert.eq([50, 100, 200], points());
assert(chunksOf(coll).every((c) => c.shard === first));

// The median of what is there.
for (let x = 0; x < 50; x++) {
    assert.commandWorked(coll.insert({x: x}));
}
assert.commandWorked(split({find: {x: 3}}));
assert.eq(4, points().length);
assert(points()[0] > 15 && points()[0] < 35, tojson(points()));
const half = points()[0];
assert.commandWorked(split({bounds: [{x: MinKey}, {x: half}]}));
assert(points()[0] > 0 && points()[0] < half, tojson(points()));
assert.eq(5, points().length);

// Nothing changed for the data.
assert.eq(50, coll.find().itcount());

// An empty chunk, and one that holds a single key.
assert.commandFailedWithCode(split({find: {x: 150}}), 87);

// Bad arguments.
const before = points();
for (const bad of [
    {},
    {middle: {x: 100}},
    {middle: {x: MinKey}},
    {middle: {y: 5}},
    {middle: {x: 5, y: 5}},
    {middle: {}},
    {middle: {x: 70}, find: {x: 70}},
    {find: {x: 70}, bounds: [{x: 50}, {x: 100}]},
    {bounds: [{x: 50}]},
    {bounds: [{x: 50}, {x: 99}]},
    {find: {y: 1}},
    {middle: {x: [1, 2]}},
]) {
    const reply = split(bad);
    assert.commandFailed(reply, tojson(bad));
    assert.eq("string", typeof reply.errmsg, tojson(reply));
}
assert(split({middle: {x: 100}}).errmsg.includes("is a boundary key of existing chunk"));
assert.commandFailedWithCode(db.adminCommand({split: `${testDB.getName()}.plain`, middle: {x: 1}}), [26, 118]);
assert.commandFailedWithCode(db.adminCommand({split: "nodot", middle: {x: 1}}), 73);
assert.commandFailedWithCode(testDB.runCommand({split: ns, middle: {x: 1}}), 13);
assert.eq(before, points());

// By a hashed key, a document is hashed; a middle is a hash.
const hashed = testDB.h;
assert.commandWorked(db.adminCommand({shardCollection: hashed.getFullName(), key: {x: "hashed"}}));
const count = chunksOf(hashed).length;
assert.commandWorked(db.adminCommand({split: hashed.getFullName(), middle: {x: NumberLong("1234567890123456789")}}));
assert.eq(count + 1, chunksOf(hashed).length);
assert(chunksOf(hashed).some((c) => bsonWoCompare(c.min, {x: NumberLong("1234567890123456789")}) === 0));
const noHash = db.adminCommand({split: hashed.getFullName(), middle: {x: "no hash"}});
assert.commandFailed(noHash);
// The key is shown as the shell writes it.
assert(noHash.errmsg.includes('{ x: "no hash" }'), noHash.errmsg);
assert.commandWorked(testDB.dropDatabase());
