/**
 * Tests hold or fail writes at the real server's fail points, of one collection or all, and see the others go on.
 * It fails if a write is not held where it should be, is held by a point about another collection, or is done although a point refuses it.
 *
 * @tags: [
 *   # Points are set on the node that writes.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const [coll, other] = [db.fail_points_of_writes, db.fail_points_of_writes_2];
[coll, other].forEach((c) => c.drop());
assert.commandWorked(coll.insert({_id: 0}));

const writes = {
    hangDuringBatchInsert: {command: {insert: coll.getName(), documents: [{_id: 1}]}, done: () => coll.findOne({_id: 1}) !== null},
    hangDuringBatchUpdate: {
        command: {update: coll.getName(), updates: [{q: {_id: 0}, u: {$set: {a: 1}}}]},
        done: () => coll.findOne({_id: 0}).a === 1,
    },
    hangDuringBatchRemove: {command: {delete: coll.getName(), deletes: [{q: {_id: 1}, limit: 1}]}, done: () => coll.findOne({_id: 1}) === null},
};
for (const [point, {command, done}] of Object.entries(writes)) {
    const held = configureFailPoint(db, point, {nss: coll.getFullName()});
    const write = startParallelShell(`assert.commandWorked(db.getSiblingDB("${db.getName()}").runCommand(${tojson(command)}));`, db.getMongo().port);
    held.wait();
    assert(!done(), point);
    assert.soon(() => db.getSiblingDB("admin").aggregate([{$currentOp: {}}, {$match: {failpointMsg: point}}]).itcount() === 1, point);
    // A point about one collection leaves the others alone.
    assert.commandWorked(other.insert({a: 1}));
    assert.commandWorked(other.update({a: 1}, {$set: {a: 2}}));
    assert.commandWorked(other.remove({a: 2}));
    held.off();
    write();
    assert(done(), point);
}

const refused = {
    failAllInserts: {insert: coll.getName(), documents: [{_id: 5}, {_id: 6}]},
    failAllUpdates: {update: coll.getName(), updates: [{q: {_id: 0}, u: {$set: {refused: 1}}}]},
    failAllRemoves: {delete: coll.getName(), deletes: [{q: {_id: 0}, limit: 1}]},
};
for (const [point, command] of Object.entries(refused)) {
    const failing = configureFailPoint(db, point);
    const reply = db.runCommand(command);
    failing.off();
    assert.commandWorkedIgnoringWriteErrors(reply);
    assert.eq([0, ErrorCodes.InternalError], [reply.n, reply.writeErrors[0].code], tojson(reply));
}
assert.eq([{_id: 0, a: 1}], coll.find().toArray());

// One document of one collection is refused, its neighbours are not.
const one = configureFailPoint(db, "failCollectionInserts", {collectionNS: coll.getFullName(), first_id: 8});
let reply = db.runCommand({insert: coll.getName(), documents: [{_id: 7}, {_id: 8}, {_id: 9}], ordered: false});
assert.commandWorked(other.insert({_id: 8}));
one.off();
assert.eq([2, [1], [ErrorCodes.FailPointEnabled]], [reply.n, reply.writeErrors.map((e) => e.index), reply.writeErrors.map((e) => e.code)], tojson(reply));

const held = configureFailPoint(db, "hangAfterCollectionInserts", {collectionNS: coll.getFullName(), first_id: 10});
const late = startParallelShell(`assert.commandWorked(db.getSiblingDB("${db.getName()}").fail_points_of_writes.insert({_id: 10}));`, db.getMongo().port);
held.wait();
assert.eq(null, coll.findOne({_id: 10}));
held.off();
late();
assert.eq({_id: 10}, coll.findOne({_id: 10}));

// Drops and validations.
for (const [point, command] of [["pauseCollectionValidationWithLock", {validate: coll.getName()}], ["hangDropCollectionBeforeLockAcquisition", {drop: coll.getName()}]]) {
    const before = configureFailPoint(db, point);
    const run = startParallelShell(`assert.commandWorked(db.getSiblingDB("${db.getName()}").runCommand(${tojson(command)}));`, db.getMongo().port);
    before.wait();
    assert.eq(4, coll.find().itcount(), point);
    before.off();
    run();
}
assert.eq(0, coll.find().itcount());

// Searches.
assert.commandWorked(other.insert({_id: 1}));
const broken = configureFailPoint(db, "planExecutorAlwaysFails");
assert.commandFailedWithCode(db.runCommand({find: other.getName(), filter: {a: 1}}), 4382101);
broken.off();
assert.commandWorked(db.runCommand({find: other.getName(), filter: {a: 1}}));

// A point that waits for acknowledgement holds a write that is there already.
const acknowledged = configureFailPoint(db, "hangBeforeWaitingForWriteConcern");
const waits = startParallelShell(`assert.commandWorked(db.getSiblingDB("${db.getName()}").fail_points_of_writes.insert({_id: 11}));`, db.getMongo().port);
acknowledged.wait();
assert.soon(() => coll.findOne({_id: 11}) !== null);
acknowledged.off();
waits();
[coll, other].forEach((c) => c.drop());
