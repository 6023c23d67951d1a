/**
 * A consumer that asks for documents before and after a change gets them as they were, however the collection went on.
 * It fails if the image is taken from the collection instead of the log, or if an image is there that was not asked to be kept.
 *
 * @tags: [requires_replication, assumes_against_mongod_not_mongos]
 */

const test = db.getSiblingDB("change_stream_images");
test.dropDatabase();
const coll = test.c;

function read(spec) {
    return test.runCommand({aggregate: "c", pipeline: [{$changeStream: spec}], cursor: {}});
}

assert.commandWorked(coll.insert({_id: 1, n: 0}));
const start = assert.commandWorked(db.hello()).operationTime;
assert.commandWorked(coll.update({_id: 1}, {$inc: {n: 1}}));
assert.commandWorked(test.runCommand({collMod: "c", changeStreamPreAndPostImages: {enabled: true}}));
assert.commandWorked(coll.update({_id: 1}, {$inc: {n: 1}}));
assert.commandWorked(coll.update({_id: 1}, {n: 10}));
assert.commandWorked(coll.remove({_id: 1}));

const both = {fullDocument: "whenAvailable", fullDocumentBeforeChange: "whenAvailable"};
const events = assert.commandWorked(read({startAtOperationTime: start, ...both})).cursor.firstBatch.slice(-4);
assert.eq(events.map((e) => [e.operationType, e.fullDocumentBeforeChange, e.fullDocument]), [
    ["update", null, null],
    ["update", {_id: 1, n: 1}, {_id: 1, n: 2}],
    ["replace", {_id: 1, n: 2}, {_id: 1, n: 10}],
    ["delete", {_id: 1, n: 10}, undefined],
]);
for (const spec of [{fullDocument: "required"}, {fullDocumentBeforeChange: "required"}]) {
    assert.commandFailedWithCode(read({startAtOperationTime: events[0].clusterTime, ...spec}),
                                 ErrorCodes.NoMatchingDocument);
    assert.commandWorked(read({resumeAfter: events[0]._id, ...spec}));
}

// The images are seen in a collection of their own, and expire.
const images = db.getSiblingDB("config").system.preimages;
const uuid = assert.commandWorked(test.runCommand({listCollections: 1})).cursor.firstBatch[0].info.uuid;
assert.eq(images.find({"_id.nsUUID": uuid}).toArray().map((d) => d.preImage), [{_id: 1, n: 1}, {_id: 1, n: 2}, {_id: 1, n: 10}]);
const expiry = (seconds) => assert.commandWorked(db.adminCommand(
    {setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: seconds}}}}));
expiry(1);
assert.soon(() => images.find({"_id.nsUUID": uuid}).itcount() === 0);
assert.commandFailedWithCode(read({resumeAfter: events[0]._id, fullDocument: "required"}), ErrorCodes.NoMatchingDocument);
expiry("off");
assert.eq(images.find({"_id.nsUUID": uuid}).itcount(), 3);

// The oplog shows no images.
const oplog = db.getSiblingDB("local").oplog.rs.find({ns: "change_stream_images.c", op: "d"}).sort({$natural: -1}).next();
assert.eq(Object.keys(oplog.o), ["_id"]);
assert(!oplog.hasOwnProperty("imageBefore"));
test.dropDatabase();
