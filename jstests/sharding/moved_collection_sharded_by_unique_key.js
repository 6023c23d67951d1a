/**
 * A collection that moveCollection has placed can be sharded by a unique key, as one can that was never moved.
 * It fails if the catalog or a shard does not know that the key is unique, or the key is taken where no unique index says so.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const testDB = freshDatabase(db, "moved_collection_sharded_by_unique_key");
const primary = db.getSiblingDB("config").databases.findOne({_id: testDB.getName()}).primary;
const other = shardNames(db).find((name) => name !== primary);
const shard = (name, key = {x: 1}) => db.adminCommand({shardCollection: `${testDB}.${name}`, key: key, unique: true});

function moved(name, documents) {
    assert.commandWorked(testDB.createCollection(name));
    documents.forEach((d) => assert.commandWorked(testDB[name].insert(d)));
    assert.commandWorked(db.adminCommand({moveCollection: `${testDB}.${name}`, toShard: other}));
    assert.eq(true, collectionEntry(testDB[name]).unsplittable);
    return testDB[name];
}
function check(coll, key) {
    const entry = collectionEntry(coll);
    assert.eq([true, key, undefined], [entry.unique, entry.key, entry.unsplittable], tojson(entry));
    const index = coll.getIndexes().find((index) => friendlyEqual(index.key, key));
    assert(index.unique || friendlyEqual(key, {_id: 1}), tojson(index));
}

// Without documents the index is made.
const empty = moved("empty", []);
assert.commandWorked(shard("empty"));
check(empty, {x: 1});
assert.commandWorked(empty.insert({x: 1}));
assert.commandFailedWithCode(empty.insert({x: 1}), ErrorCodes.DuplicateKey);

// With documents it must be there, and be unique.
const filled = moved("filled", [{_id: 1, x: 1}, {_id: 2, x: 2}]);
assert.commandFailedWithCode(shard("filled"), ErrorCodes.InvalidOptions);
assert.commandWorked(filled.createIndex({x: 1}));
assert.commandFailedWithCode(shard("filled"), [ErrorCodes.InvalidOptions, ErrorCodes.IndexKeySpecsConflict]);
assert.eq(true, collectionEntry(filled).unsplittable);
assert.commandWorked(filled.dropIndex({x: 1}));
assert.commandWorked(filled.createIndex({x: 1}, {unique: true}));
assert.commandWorked(shard("filled"));
check(filled, {x: 1});
assert.eq([1, 2], filled.find().sort({x: 1}).toArray().map((d) => d.x));
assert.commandFailedWithCode(filled.insert({x: 2}), ErrorCodes.DuplicateKey);
assert.commandWorked(shard("filled"), "again");
assert.commandFailedWithCode(db.adminCommand({shardCollection: filled.getFullName(), key: {x: 1}}), ErrorCodes.AlreadyInitialized);

// That on _id is unique by itself.
const byId = moved("by_id", [{_id: 1}]);
assert.commandWorked(shard("by_id", {_id: 1}));
check(byId, {_id: 1});
assert.eq(1, byId.getIndexes().length);

// A resharding keeps nothing unique, and says so.
assert.commandFailedWithCode(
    db.adminCommand({reshardCollection: filled.getFullName(), key: {x: "hashed"}, unique: true}), ErrorCodes.BadValue);
assert.eq([], testDB.runCommand({checkMetadataConsistency: 1, checkIndexes: true}).cursor.firstBatch);
assert.commandWorked(testDB.dropDatabase());
