/**
 * A consumer of a change stream rebuilds a collection from its events, and goes on from any of them after a failure.
 * It fails if an update by operators is logged as a replacement, if a token does not resume behind its own event, or if the
 * stream goes on after its collection is dropped.
 *
 * @tags: [requires_replication, assumes_against_mongod_not_mongos]
 */

const dbName = "change_stream_events";
const test = db.getSiblingDB(dbName);
test.dropDatabase();
const coll = test.c;

function open(spec, more = [], target = "c") {
    return assert.commandWorked(
        test.runCommand({aggregate: target, pipeline: [{$changeStream: spec}].concat(more), cursor: {}}));
}
function next(cursor, target = "c") {
    return assert.commandWorked(test.runCommand({getMore: cursor.id, collection: target, maxTimeMS: 200})).cursor;
}
const types = (events) => events.map((e) => e.operationType);

assert.commandWorked(test.createCollection("c"));
const opened = open({}).cursor;
assert.eq(opened.firstBatch, []);

const filler = "x".repeat(200);
assert.commandWorked(coll.insert({_id: 1, a: 1, list: [1, 2, 3], deep: {x: 1, filler}}));
assert.commandWorked(coll.update({_id: 1}, {$set: {a: 2, "deep.x": 2}, $push: {list: 4}, $unset: {none: 1}}));
assert.commandWorked(coll.update({_id: 1}, [{$set: {list: {$slice: ["$list", 2]}}}]));
assert.commandWorked(coll.update({_id: 1}, {$set: {list: [9, 9]}}));
assert.commandWorked(coll.update({_id: 1}, {b: 1}));
assert.commandWorked(coll.remove({_id: 1}));
const events = next(opened).nextBatch;
assert.eq(types(events), ["insert", "update", "update", "update", "replace", "delete"]);
assert.eq(Object.keys(events[0]),
          ["_id", "operationType", "clusterTime", "wallTime", "fullDocument", "ns", "documentKey"]);
assert.eq(events[1].updateDescription,
          {updatedFields: {a: 2, "list.3": 4, "deep.x": 2}, removedFields: [], truncatedArrays: []});
assert.eq(events[2].updateDescription,
          {updatedFields: {}, removedFields: [], truncatedArrays: [{field: "list", newSize: 2}]});
assert.eq(events[3].updateDescription.updatedFields, {list: [9, 9]});
assert.eq(events[4].fullDocument, {_id: 1, b: 1});

// Every token resumes behind its event, and the tokens ascend.
for (let i = 0; i < events.length; i++) {
    assert.eq(types(open({resumeAfter: events[i]._id}).cursor.firstBatch), types(events).slice(i + 1));
    assert(i == 0 || events[i - 1]._id._data < events[i]._id._data);
    assert.eq(decodeResumeToken(events[i]._id).eventIdentifier.operationType, events[i].operationType);
}
assert.eq(types(open({startAtOperationTime: events[2].clusterTime}).cursor.firstBatch), types(events).slice(2));

// The promise of an empty batch is a high-water mark that never goes back.
let idle = open({}).cursor;
const first = idle.postBatchResumeToken._data;
assert.eq(decodeResumeToken(idle.postBatchResumeToken).tokenType, highWaterMarkResumeTokenType);
assert.commandWorked(test.other.insert({_id: 1}));
idle = next(idle);
assert.eq(idle.nextBatch, []);
assert.gt(idle.postBatchResumeToken._data, first);

// What the stages do to an event is checked.
assert.commandFailedWithCode(
    test.runCommand({aggregate: "c", pipeline: [{$changeStream: {}}, {$group: {_id: 1}}], cursor: {}}),
    ErrorCodes.IllegalOperation);
const stripped = open({resumeAfter: events[0]._id, fullDocument: "updateLookup"}, [{$project: {_id: 1, fullDocument: 1}}]);
assert.eq(stripped.cursor.firstBatch[0], {_id: events[1]._id, fullDocument: null});
const failed = test.runCommand(
    {aggregate: "c", pipeline: [{$changeStream: {resumeAfter: events[0]._id}}, {$unset: "_id"}], cursor: {}});
assert.commandFailedWithCode(failed, ErrorCodes.ChangeStreamFatalError);
assert.contains("NonResumableChangeStreamError", failed.errorLabels);

// A database's stream sees the catalog change, and the collection's ends with it.
const whole = open({showExpandedEvents: true}, [], 1).cursor;
const watched = open({}).cursor;
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(test.runCommand({collMod: "c", validationLevel: "moderate"}));
assert.commandWorked(coll.dropIndex("a_1"));
assert.commandWorked(coll.renameCollection("d"));
assert(test.d.drop());
const ddl = next(whole, "$cmd.aggregate").nextBatch;
assert.eq(types(ddl), ["createIndexes", "modify", "dropIndexes", "rename", "drop"]);
assert.eq(ddl[0].operationDescription, {indexes: [{v: 2, key: {a: 1}, name: "a_1"}]});
assert.eq(ddl[1].operationDescription, {validationLevel: "moderate"});
assert.eq(Object.keys(ddl[1].stateBeforeChange.collectionOptions), ["uuid"]);
assert.eq(ddl[3].to, {db: dbName, coll: "d"});
const last = next(watched);
assert.eq(types(last.nextBatch), ["rename", "invalidate"]);
assert.eq(last.id, 0);
const [rename, invalidate] = last.nextBatch;
assert.eq(types(open({resumeAfter: rename._id}).cursor.firstBatch), ["invalidate"]);
assert.commandFailedWithCode(
    test.runCommand({aggregate: "c", pipeline: [{$changeStream: {resumeAfter: invalidate._id}}], cursor: {}}),
    ErrorCodes.InvalidResumeToken);
const after = open({startAfter: invalidate._id}).cursor;
assert.commandWorked(coll.insert({_id: 2}));
assert.eq(types(next(after).nextBatch), ["insert"]);
test.dropDatabase();
