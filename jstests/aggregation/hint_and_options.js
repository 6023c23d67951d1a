/**
 * An aggregation takes the options of a query: hints, comments, read concerns, validation bypass.
 * Fails when a hint is passed over, an option of a wrong type is taken, or documents written by $out or $merge escape the validator.
 *
 * @tags: [
 *   # The target is an ordinary collection.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.hint_and_options;
const target = db.hint_and_options_target;
coll.drop();
target.drop();
assert.commandWorked(coll.insert([...Array(10).keys()].map(i => i < 5 ? {_id: i, a: i} : {_id: i})));
assert.commandWorked(coll.createIndex({a: 1}, {sparse: true}));
const name = coll.getName();

// A sparse index lacks half of the documents, which shows whether it is used.
assert.eq(10, coll.aggregate([{$match: {}}]).itcount());
assert.eq(5, coll.aggregate([{$match: {}}], {hint: {a: 1}}).itcount());
assert.eq(5, coll.aggregate([{$group: {_id: "$_id"}}], {hint: "a_1"}).itcount());
assert.eq(10, coll.aggregate([{$match: {}}], {hint: {$natural: 1}, comment: {any: 1}}).itcount());
assert.eq([4, 3], coll.aggregate([{$sort: {a: -1}}, {$limit: 2}], {hint: {a: 1}}).toArray().map(doc => doc.a));
assert.eq(10, coll.aggregate([], {readConcern: {level: "majority"}, maxTimeMS: 60000, allowDiskUse: true}).itcount());

function refused(codes, options) {
    assert.commandFailedWithCode(db.runCommand(Object.assign({aggregate: name, pipeline: [], cursor: {}}, options)), codes, () => tojson(options));
}
refused(ErrorCodes.BadValue, {hint: "none"});
refused(ErrorCodes.TypeMismatch, {bypassDocumentValidation: "yes"});
refused(ErrorCodes.TypeMismatch, {explain: "yes"});
refused(ErrorCodes.TypeMismatch, {let: 1});
refused([ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch], {hint: 5});

// A validator of the target counts for what a pipeline writes.
assert.commandWorked(db.createCollection(target.getName(), {validator: {a: {$exists: true}}}));
const merge = [{$match: {_id: {$in: [0, 7]}}}, {$sort: {_id: 1}}, {$merge: target.getName()}];
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: merge, cursor: {}}), ErrorCodes.DocumentValidationFailure);
assert.eq(0, target.find({_id: 7}).itcount());
assert.commandWorked(db.runCommand({aggregate: name, pipeline: merge, cursor: {}, bypassDocumentValidation: true}));
assert.eq([0, 7], target.find().sort({_id: 1}).toArray().map(doc => doc._id));
