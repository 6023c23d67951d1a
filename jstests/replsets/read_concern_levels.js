/**
 * Read concern says how durable what is read must be, and from which time on; each level has its own rules.
 * It fails if a level is refused or taken where it must not be, or a read does not wait for the time it names.
 *
 * @tags: [requires_replication]
 */
const coll = db.read_concern_levels;
coll.drop();
const written = assert.commandWorked(db.runCommand(
    {insert: coll.getName(), documents: [{_id: 1}, {_id: 2}], writeConcern: {w: "majority"}}));
const find = (concern, more) => db.runCommand(Object.assign({find: coll.getName(), readConcern: concern}, more));

for (const level of ["local", "available", "majority", "linearizable", "snapshot"]) {
    const reply = assert.commandWorked(find({level: level}), level);
    assert.eq(2, reply.cursor.firstBatch.length, level);
    assert(reply.operationTime instanceof Timestamp, level);
    const counted = assert.commandWorked(db.runCommand({
        aggregate: coll.getName(), pipeline: [{$match: {_id: {$gt: 1}}}], cursor: {}, readConcern: {level: level},
    }), level);
    assert.eq(1, counted.cursor.firstBatch.length, level);
}
assert.commandWorked(find({}));
assert.commandWorked(db.runCommand({count: coll.getName(), readConcern: {level: "majority"}}));
assert.commandWorked(db.runCommand({distinct: coll.getName(), key: "_id", readConcern: {level: "majority"}}));

// A snapshot names its time, and can be read again at that time.
const snapshot = assert.commandWorked(find({level: "snapshot"}));
assert(snapshot.cursor.atClusterTime instanceof Timestamp, tojson(snapshot));
assert.commandWorked(coll.insert({_id: 3}));
const after = assert.commandWorked(find({level: "majority"}));
assert.eq(3, after.cursor.firstBatch.length);

// From a time on.
for (const level of ["local", "majority"]) {
    assert.eq(3, assert.commandWorked(find({level: level, afterClusterTime: written.operationTime})).cursor.firstBatch.length);
}
const future = Timestamp(written.operationTime.getTime() + 3600, 1);
assert.commandFailedWithCode(find({level: "majority", afterClusterTime: future}), 72);

// From an entry on, as members name it.
const optime = {ts: written.operationTime, t: NumberLong(1)};
for (const level of ["local", "majority"]) {
    assert.eq(3, assert.commandWorked(find({level: level, afterOpTime: optime})).cursor.firstBatch.length);
}
assert.commandFailedWithCode(find({afterOpTime: {ts: future, t: NumberLong(1)}}, {maxTimeMS: 300}), 50);
assert.commandFailedWithCode(find({afterOpTime: optime, afterClusterTime: written.operationTime}), 72);
assert.commandFailedWithCode(find({level: "linearizable", afterOpTime: optime}), 9);
assert.commandFailedWithCode(find({level: "snapshot", afterOpTime: optime}), 72);
assert.commandFailedWithCode(find({afterOpTime: written.operationTime}), 14);
assert.commandFailedWithCode(find({afterOpTime: {t: NumberLong(1)}}), 4);

// What does not go together.
assert.commandFailedWithCode(find({level: "nonsense"}), [2, 9]);
assert.commandFailedWithCode(find({level: 5}), [9, 14]);
assert.commandFailedWithCode(find({level: "local", unknown: 1}), [9, 40415]);
assert.commandFailedWithCode(find("majority"), [9, 14]);
assert.commandFailedWithCode(find({level: "available", afterClusterTime: written.operationTime}), 72);
assert.commandFailedWithCode(find({level: "linearizable", afterClusterTime: written.operationTime}), 72);
assert.commandFailedWithCode(find({level: "majority", atClusterTime: written.operationTime}), 72);
const both = {afterClusterTime: written.operationTime, atClusterTime: written.operationTime};
assert.commandFailedWithCode(find(Object.assign({level: "snapshot"}, both)), 72);
assert.commandFailedWithCode(find({level: "local", afterClusterTime: 5}), [14]);

// Writes know only the local ones.
assert.commandFailedWithCode(db.runCommand(
    {insert: coll.getName(), documents: [{_id: 9}], readConcern: {level: "majority"}}), 72);
assert.commandFailedWithCode(db.runCommand(
    {update: coll.getName(), updates: [{q: {_id: 1}, u: {$set: {a: 1}}}], readConcern: {level: "majority"}}), 72);
assert.commandFailedWithCode(db.runCommand({ping: 1, readConcern: {level: "majority"}}), 72);
assert.eq(3, coll.find().itcount());

// A linearizable read without a limit on its time is answered at once here, and its time limit holds.
assert.commandWorked(find({level: "linearizable"}, {maxTimeMS: 10000}));
coll.drop();
