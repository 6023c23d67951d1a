/**
 * A transaction through a router may make an unsharded collection and its indexes, which are there when it commits and not
 * before; one that has written on several shards may not. It fails if the router refuses, or if the collection outlives an abort,
 * or if a namespace that its shard has never heard of ends the transaction whose later statement touches it first.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "transactions_create_collections", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
const session = db.getMongo().startSession();
const inSession = session.getDatabase(testDB.getName());
const names = () => testDB.getCollectionNames().sort();

for (const commits of [false, true]) {
    session.startTransaction();
    assert.commandWorked(inSession.runCommand({create: "made"}));
    const index = {key: {a: 1}, name: "a_1"};
    assert.commandWorked(inSession.runCommand({createIndexes: "made", indexes: [index]}));
    assert.commandWorked(inSession.runCommand({insert: "made", documents: [{_id: 1, a: 1}]}));
    assert.eq(1, inSession.made.find({a: 1}).hint("a_1").itcount());
    assert.eq(["c"], names());
    if (commits) {
        assert.commandWorked(session.commitTransaction_forTesting());
    } else {
        assert.commandWorked(session.abortTransaction_forTesting());
    }
    assert.eq(commits ? ["c", "made"] : ["c"], names());
}
// An index alone makes its collection.
session.startTransaction();
assert.commandWorked(inSession.runCommand({createIndexes: "with_index", indexes: [{key: {a: 1}, name: "a_1"}]}));
assert.commandWorked(session.commitTransaction_forTesting());
assert.eq(["c", "made", "with_index"], names());
assert.eq(["_id_", "a_1"], testDB.made.getIndexes().map((i) => i.name));

// Refused: a sharded one, a view, an index on what has documents; each ends the transaction.
for (const [command, code] of [
    [{create: "c"}, 48], [{create: "made"}, 48], [{create: "v", viewOn: "made", pipeline: []}, 263],
    [{createIndexes: "made", indexes: [{key: {b: 1}, name: "b_1"}]}, 263],
    [{createIndexes: "c", indexes: [{key: {b: 1}, name: "b_1"}]}, 263],
    [{drop: "made"}, 263], [{collMod: "made"}, 263], [{dropIndexes: "made", index: "a_1"}, 263],
]) {
    session.startTransaction();
    assert.commandWorked(inSession.runCommand({find: "made"}));
    assert.commandFailedWithCode(inSession.runCommand(command), code, tojson(command));
    session.abortTransaction_forTesting();
}
// A later statement may be the first that a shard hears of a collection, or of a database.
const laterDB = db.getSiblingDB(`${testDB.getName()}_later`);
assert.commandWorked(laterDB.dropDatabase());
assert.commandWorked(db.adminCommand({enableSharding: laterDB.getName(), primaryShard: first}));
const inLater = session.getDatabase(laterDB.getName());
for (const command of [
    {insert: "inserted", documents: [{_id: 1}]}, {create: "created"}, {find: "found"},
    {createIndexes: "indexed", indexes: [{key: {a: 1}, name: "a_1"}]},
    {aggregate: "inserted", pipeline: [{$lookup: {from: "joined", localField: "a", foreignField: "b", as: "c"}}], cursor: {}},
]) {
    session.startTransaction();
    assert.commandWorked(inSession.runCommand({insert: "c", documents: [{x: -2}]}));
    assert.commandWorked(inLater.runCommand(command), tojson(command));
    assert.commandWorked(session.commitTransaction_forTesting());
}
assert.eq(["created", "indexed", "inserted"], laterDB.getCollectionNames().sort());
assert.eq(5, coll.deleteMany({x: -2}).deletedCount);
assert.commandWorked(laterDB.dropDatabase());
// An index that is there already is no change.
session.startTransaction();
assert.commandWorked(inSession.runCommand({createIndexes: "c", indexes: [{key: {x: 1}, name: "x_1"}]}));
assert.commandWorked(session.commitTransaction_forTesting());
// Writes on two shards and a new collection.
session.startTransaction();
assert.commandWorked(inSession.runCommand({create: "across"}));
assert.commandWorked(inSession.runCommand({insert: "c", documents: [{x: -1}, {x: 1}]}));
assert.commandFailed(session.commitTransaction_forTesting());
assert.eq([0, ["c", "made", "with_index"]], [coll.find().itcount(), names()]);
session.endSession();
assert.commandWorked(testDB.dropDatabase());
