/**
 * What nodes refuse of indexes, names and settings, each with the code that tools look for.
 * Fails when an index is made beside the records of transactions, the index on _id takes an option, a name may hold a NUL, sub-pipelines may
 * nest without end, a scale is no number above 1, or background compaction forgets what it was asked.
 *
 * @tags: [
 *   # Routers have nothing to compact, and ask the config servers about their database.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const mine = db.getSiblingDB("administrative_limits_test");
assert.commandWorked(mine.dropDatabase());
const coll = mine.c;
assert.commandWorked(coll.insert({_id: 1}));
const name = coll.getName();
const admin = db.getSiblingDB("admin");
const fails = (code, command, database = mine) => assert.commandFailedWithCode(database.runCommand(command), code, () => tojson(command));

const index = (more) => [Object.assign({key: {a: 1}, name: "a_1"}, more)];
fails(ErrorCodes.IllegalOperation, {createIndexes: "transactions", indexes: index()}, db.getSiblingDB("config"));
fails(ErrorCodes.CannotCreateIndex, {createIndexes: name, indexes: index({name: "a\0b"})});
fails(ErrorCodes.InvalidNamespace, {create: "a\0b"});
fails(ErrorCodes.InvalidIndexSpecificationOption, {createIndexes: name, indexes: [{key: {_id: 1}, name: "_id_", unique: true}]});
assert.eq(["_id_"], coll.getIndexes().map((made) => made.name));

function unions(depth) {
    let pipeline = [];
    for (let i = 0; i < depth; i++) {
        pipeline = [{$unionWith: {coll: name, pipeline}}];
    }
    return {aggregate: name, pipeline, cursor: {}};
}
assert.eq(21, assert.commandWorked(mine.runCommand(unions(20))).cursor.firstBatch.length);
fails(232, unions(21));

const size = mine.stats().dataSize;
assert.eq(size, mine.runCommand({dbStats: 1, scale: NumberDecimal("1")}).dataSize);
assert.eq(2, Number(mine.runCommand({dbStats: 1, scale: NumberDecimal("2.5")}).scaleFactor));
fails(ErrorCodes.BadValue, {dbStats: 1, scale: NumberDecimal("0.5")});
fails(ErrorCodes.TypeMismatch, {dbStats: 1, scale: "1"});

const compact = (more) => Object.assign({autoCompact: true}, more);
try {
    assert.commandWorked(admin.runCommand(compact({freeSpaceTargetMB: 5})));
    assert.commandWorked(admin.runCommand(compact({freeSpaceTargetMB: 5})));
    fails(ErrorCodes.AlreadyInitialized, compact({freeSpaceTargetMB: 6}), admin);
} finally {
    assert.commandWorked(admin.runCommand({autoCompact: false}));
}
assert.commandWorked(admin.runCommand(compact({freeSpaceTargetMB: 6, runOnce: true})));
assert.commandWorked(admin.runCommand(compact({freeSpaceTargetMB: 7, runOnce: true})), "a single pass is over");
fails(ErrorCodes.BadValue, compact({freeSpaceTargetMB: 0}), admin);
fails(ErrorCodes.TypeMismatch, {autoCompact: 1}, admin);
fails(ErrorCodes.Unauthorized, {autoCompact: false});
assert.commandWorked(admin.runCommand({autoCompact: false}));
assert.commandWorked(mine.dropDatabase());
