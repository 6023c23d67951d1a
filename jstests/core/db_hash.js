/**
 * Tests compare nodes by the checksums of their collections, so equal contents must have equal sums and others not.
 * Fails when the order of insertion, an index or a removed document changes a sum, or a changed value does not.
 *
 * @tags: [
 *   # Routers have no documents to sum up.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const one = db.getSiblingDB("db_hash_one");
const two = db.getSiblingDB("db_hash_two");
assert.commandWorked(one.dropDatabase());
assert.commandWorked(two.dropDatabase());
const documents = [...Array(20).keys()].map(i => ({_id: i, v: "value" + i}));
assert.commandWorked(one.c.insert(documents));
assert.commandWorked(two.c.insert(documents.slice().reverse()));
assert.commandWorked(one.d.insert({_id: 1}));
assert.commandWorked(two.d.insert({_id: 1}));

function hash(database, options) {
    return assert.commandWorked(database.runCommand(Object.assign({dbHash: 1}, options)));
}
const first = hash(one);
assert.eq(["c", "d"], Object.keys(first.collections).sort());
assert(/^[0-9a-f]{32}$/.test(first.md5), first.md5);
assert.eq(first.collections, hash(two).collections);
assert.eq(first.md5, hash(two).md5);
assert.neq(first.collections.c, first.collections.d);

// What comes and goes again leaves no trace.
assert.commandWorked(two.c.createIndex({v: 1}));
assert.commandWorked(two.c.insert({_id: 99}));
assert.neq(first.collections.c, hash(two).collections.c);
assert.neq(first.md5, hash(two).md5);
assert.commandWorked(two.c.remove({_id: 99}));
assert.eq(first.md5, hash(two).md5);

// Another value, or the same in another type, is another sum.
assert.commandWorked(two.d.update({_id: 1}, {$set: {a: NumberInt(1)}}));
assert.commandWorked(one.d.update({_id: 1}, {$set: {a: NumberLong(1)}}));
assert.neq(hash(one).collections.d, hash(two).collections.d);
assert.eq(hash(one).collections.c, hash(two).collections.c);

assert.eq(["c"], Object.keys(hash(one, {collections: ["c"]}).collections));
assert.eq([], Object.keys(hash(one, {collections: ["none"]}).collections));
assert.eq(["c", "d"], Object.keys(hash(one).uuids).sort());
// What is no list of names is no restriction.
assert.eq(["c", "d"], Object.keys(hash(one, {collections: "c", other: 1}).collections).sort());
assert.commandFailedWithCode(one.runCommand({dbHash: 1, collections: [1]}), ErrorCodes.BadValue);
assert.commandWorked(one.dropDatabase());
assert.commandWorked(two.dropDatabase());
