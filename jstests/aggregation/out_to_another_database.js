/**
 * $out may write into another database, which it makes when it is not there.
 * Fails when the result lands in the database of the source, or the source loses documents.
 *
 * @tags: [
 *   # The two databases may have different primary shards.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const source = db.out_to_another_database;
const other = db.getSiblingDB("out_to_another_database");
source.drop();
assert.commandWorked(other.dropDatabase());
assert.commandWorked(source.insert([{_id: 1, v: 10}, {_id: 2, v: 20}, {_id: 3, v: 30}]));

assert.eq([], source.aggregate([{$match: {v: {$gt: 10}}}, {$out: {db: other.getName(), coll: "c"}}]).toArray());
assert.eq([{_id: 2, v: 20}, {_id: 3, v: 30}], other.c.find().sort({_id: 1}).toArray());
assert.eq(3, source.find().itcount());
assert.eq(0, db.c.find({v: {$gt: 10}}).itcount());

// Again, with what $merge has put there since.
source.aggregate([{$merge: {into: {db: other.getName(), coll: "c"}}}]);
assert.eq(3, other.c.find().itcount());
source.aggregate([{$limit: 1}, {$set: {only: true}}, {$out: {db: other.getName(), coll: "c"}}]);
assert.eq([true], other.c.find().toArray().map(doc => doc.only));

assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [{$out: {db: "bad name", coll: "c"}}], cursor: {}}),
                             ErrorCodes.InvalidNamespace);
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [{$out: {db: "local", coll: "c"}}], cursor: {}}),
                             [31321, ErrorCodes.InvalidNamespace]);
assert.commandFailedWithCode(db.runCommand({aggregate: source.getName(), pipeline: [{$out: {db: "admin", coll: "c"}}], cursor: {}}),
                             [31321, ErrorCodes.InvalidNamespace]);
assert.commandWorked(other.dropDatabase());
