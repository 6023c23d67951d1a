/**
 * Errors that show what a client sent are cut, and of many of them only the first show their text, so that a reply is never larger than a
 * client can read. Fails if a message is shown whole, if all are shown, or if a reply of more than 16 MB is sent.
 *
 * @tags: [assumes_unsharded_collection]
 */
const coll = db.large_errors_fit_a_reply;
coll.drop();
const megabyte = 1024 * 1024;

assert.commandWorked(coll.insert({_id: 1, s: "x".repeat(15 * megabyte)}));
const refused = Array.from(Array(20), () => ({q: {_id: 1}, u: {$set: {"s.a": 1}}}));
let reply = assert.commandWorkedIgnoringWriteErrors(db.runCommand({update: coll.getName(), updates: refused, ordered: false}));
assert.eq(20, reply.writeErrors.length);
assert(reply.writeErrors.every((e) => e.code === ErrorCodes.PathNotViable));
assert.eq([megabyte, 0], [reply.writeErrors[0].errmsg.length, reply.writeErrors[19].errmsg.length]);
assert(reply.writeErrors[0].errmsg.startsWith("Cannot create field 'a' in element {s: \"xxx"), "another message");

reply = db.runCommand({
    aggregate: 1, pipeline: [{$documents: [{}]}, {$project: {a: {$mergeObjects: [{$range: [0, 1000000]}, {}]}}}], cursor: {},
});
assert.eq([0, megabyte], [reply.ok, reply.errmsg.length]);

// Keys that exist already are shown beside the messages, and make the reply too large.
coll.drop();
const long = "y".repeat(7 * megabyte);
assert.commandWorked(coll.createIndex({s: 1}, {unique: true, sparse: true}));
assert.commandWorked(coll.insert({_id: 0, s: long}));
const same = [1, 2, 3].map((_id) => {
    assert.commandWorked(coll.insert({_id, t: long}));
    return {q: {_id}, u: [{$set: {s: "$t"}}]};
});
assert.commandFailedWithCode(
    db.runCommand({update: coll.getName(), updates: same, ordered: false}), ErrorCodes.BSONObjectTooLarge);
reply = assert.commandWorkedIgnoringWriteErrors(db.runCommand({update: coll.getName(), updates: [same[0]]}));
assert.eq(ErrorCodes.DuplicateKey, reply.writeErrors[0].code);
coll.drop();
