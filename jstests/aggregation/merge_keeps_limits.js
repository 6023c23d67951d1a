/**
 * What $merge makes of two documents is a document like any other, and what it inserts into a capped collection counts there.
 * It fails if a merged document may be larger than 16 MB, which nobody could read, or if a capped target grows beyond its bounds.
 *
 * @tags: [assumes_unsharded_collection]
 */
const [source, target] = [db.merge_keeps_limits_source, db.merge_keeps_limits];
source.drop();
target.drop();
const long = "x".repeat(9 * 1024 * 1024);
assert.commandWorked(target.insert({_id: 1, a: long}));
assert.commandWorked(source.insert({_id: 1, b: long}));
const merge = {aggregate: source.getName(), pipeline: [{$merge: target.getName()}], cursor: {}};
assert.commandFailedWithCode(db.runCommand(merge), [10334, 17419]);
assert.eq(["_id", "a"], Object.keys(target.findOne()));

source.drop();
target.drop();
assert.commandWorked(db.createCollection(target.getName(), {capped: true, size: 1000000, max: 5}));
assert.commandWorked(source.insert([...Array(50).keys()].map((i) => ({_id: i}))));
assert.commandWorked(db.runCommand(merge));
assert.eq(5, target.find().itcount());
assert.commandWorked(target.insert({_id: "next"}));
assert.eq(5, target.find().itcount());
