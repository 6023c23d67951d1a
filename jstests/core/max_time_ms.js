/**
 * maxTimeMS bounds the time that a command may take.
 * Fails when a command goes on long after its time, ends with another code, or an invalid limit is taken.
 */
const coll = db.max_time_ms;
coll.drop();
assert.commandWorked(coll.insert([...Array(2000).keys()].map(i => ({_id: i}))));
const name = coll.getName();

// Much work for each document, which is far more than a few milliseconds in all.
const slow = {$gt: [{$reduce: {input: {$range: ["$_id", {$add: ["$_id", 5000]}]}, initialValue: 0, in: {$add: ["$$value", "$$this"]}}}, -1]};
const begin = Date.now();
assert.commandFailedWithCode(db.runCommand({find: name, filter: {$expr: slow}, maxTimeMS: 20}), ErrorCodes.MaxTimeMSExpired);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{$match: {$expr: slow}}], cursor: {}, maxTimeMS: 20}),
                             ErrorCodes.MaxTimeMSExpired);
assert.commandFailedWithCode(db.runCommand({count: name, query: {$expr: slow}, maxTimeMS: 20}), ErrorCodes.MaxTimeMSExpired);
assert.commandFailedWithCode(db.runCommand({distinct: name, key: "_id", query: {$expr: slow}, maxTimeMS: 20}), ErrorCodes.MaxTimeMSExpired);
assert.lt(Date.now() - begin, 20 * 1000);

// Zero is no limit, and enough time is enough.
assert.commandWorked(db.runCommand({find: name, maxTimeMS: 0}));
assert.commandWorked(db.runCommand({find: name, maxTimeMS: 60 * 1000}));
assert.eq(2000, coll.find().maxTimeMS(60 * 1000).itcount());

for (const limit of [-1, 2147483648, NumberLong("9223372036854775807"), 1.5]) {
    assert.commandFailedWithCode(db.runCommand({find: name, maxTimeMS: limit}),
                                 [ErrorCodes.BadValue, ErrorCodes.FailedToParse],
                                 () => tojson(limit));
}
assert.commandFailedWithCode(db.runCommand({ping: 1, maxTimeMS: "1"}), [ErrorCodes.TypeMismatch, ErrorCodes.BadValue]);
assert.commandFailedWithCode(db.runCommand({find: name, $maxTimeMS: 1}), [ErrorCodes.InvalidOptions, 40415]);
