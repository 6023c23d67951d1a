/**
 * A TTL index is an ordinary one with a lifetime, which must be a number of seconds on a single field.
 * Fails when an invalid lifetime is taken, or a document whose time is not yet over is removed.
 */
const coll = db.index_ttl_options;
coll.drop();
const now = Date.now();
assert.commandWorked(coll.insert([{_id: 0, at: new Date(now)}, {_id: 1, at: "no date"}, {_id: 2}, {_id: 3, at: new Date(now + 3600 * 1000)}]));
assert.commandWorked(coll.createIndex({at: 1}, {expireAfterSeconds: 3600}));
assert.eq(3600, coll.getIndexes().filter(index => index.name == "at_1")[0].expireAfterSeconds);
assert.eq([0, 3], coll.find({at: {$type: "date"}}).sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq(4, coll.find().itcount());

function refused(codes, key, options) {
    assert.commandFailedWithCode(coll.createIndex(key, options), codes, () => tojson([key, options]));
}
refused([ErrorCodes.CannotCreateIndex, ErrorCodes.InvalidOptions], {x: 1}, {expireAfterSeconds: -1});
refused([ErrorCodes.CannotCreateIndex, ErrorCodes.InvalidOptions, ErrorCodes.TypeMismatch], {x: 1}, {expireAfterSeconds: "1"});
refused([ErrorCodes.CannotCreateIndex, ErrorCodes.InvalidOptions], {x: 1, y: 1}, {expireAfterSeconds: 1});
refused([ErrorCodes.CannotCreateIndex, ErrorCodes.InvalidOptions], {x: 1}, {expireAfterSeconds: 1e12});
refused([ErrorCodes.CannotCreateIndex, ErrorCodes.InvalidIndexSpecificationOption], {_id: 1}, {expireAfterSeconds: 10});
refused([ErrorCodes.IndexOptionsConflict, ErrorCodes.IndexKeySpecsConflict], {at: 1}, {expireAfterSeconds: 7});
assert.commandWorked(coll.createIndex({z: 1}, {expireAfterSeconds: 0}));
