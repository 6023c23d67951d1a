/**
 * A document of sixteen megabytes is the largest there may be, whichever way it comes into being.
 * Fails when an insert or an update makes a document larger than 16777216 bytes, or the server refuses one of exactly that size.
 */
const coll = db.document_size_limit;
coll.drop();
const limit = 16 * 1024 * 1024;
assert.eq(limit, db.hello().maxBsonObjectSize);

const overhead = Object.bsonsize({_id: 1, s: ""});
const largest = {_id: 1, s: "x".repeat(limit - overhead)};
assert.eq(limit, Object.bsonsize(largest));
assert.commandWorked(coll.insert(largest));
assert.eq(limit, Object.bsonsize(coll.findOne({_id: 1})));

// An update may not make it any larger.
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {t: 1}}), [17419, 17420, ErrorCodes.BSONObjectTooLarge]);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {s: largest.s + "y"}}), [17419, 17420, ErrorCodes.BSONObjectTooLarge, 2]);
assert.eq(limit, Object.bsonsize(coll.findOne({_id: 1})));

// Nor may pushes make one grow past the limit.
assert.commandWorked(coll.insert({_id: 2, a: []}));
const megabytes = "y".repeat(6 * 1024 * 1024);
assert.commandWorked(coll.update({_id: 2}, {$push: {a: megabytes}}));
assert.commandWorked(coll.update({_id: 2}, {$push: {a: megabytes}}));
assert.commandFailedWithCode(coll.update({_id: 2}, {$push: {a: megabytes}}), [17419, 17420, ErrorCodes.BSONObjectTooLarge]);
assert.eq(2, coll.findOne({_id: 2}).a.length);
assert(coll.drop());
