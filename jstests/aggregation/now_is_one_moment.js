/**
 * The present is one moment for a whole command, so that results do not depend on how long it takes.
 * Fails when two stages, two documents or an inner pipeline see different times.
 *
 * @tags: [
 *   # Shards read their own clocks.
 *   assumes_unsharded_collection,
 * ]
 */
const coll = db.now_is_one_moment;
coll.drop();
assert.commandWorked(coll.insert([...Array(50).keys()].map(i => ({_id: i, v: i * 10}))));

const slow = {$sum: {$range: ["$_id", {$add: ["$_id", 2000]}]}};
const moments = coll.aggregate([
    {$set: {first: "$$NOW", work: slow}},
    {$lookup: {from: coll.getName(), pipeline: [{$limit: 1}, {$project: {_id: 0, at: "$$NOW"}}], as: "inner"}},
    {$set: {last: "$$NOW"}},
    {$facet: {
        all: [{$group: {_id: "$first"}}, {$count: "n"}],
        stages: [{$match: {$expr: {$ne: ["$first", "$last"]}}}, {$count: "n"}],
        inner: [{$match: {$expr: {$ne: ["$first", {$first: "$inner.at"}]}}}, {$count: "n"}],
        one: [{$limit: 1}, {$project: {first: 1}}],
    }},
]).toArray()[0];
assert.eq([{n: 1}], moments.all);
assert.eq([], moments.stages);
assert.eq([], moments.inner);
assert(moments.one[0].first instanceof Date, tojson(moments.one));
assert.lte(Math.abs(Date.now() - moments.one[0].first.getTime()), 60 * 1000);

// A query and an update have one as well, and it is before the command's end.
assert.eq(50, coll.find({$expr: {$lte: [new Date(0), "$$NOW"]}}).itcount());
assert.commandWorked(coll.update({}, [{$set: {at: "$$NOW"}}], {multi: true}));
assert.eq(1, coll.distinct("at").length);
assert.lte(moments.one[0].first, coll.findOne().at);

// Some commands, and the variables of any, are evaluated without one.
for (const command of [
    {count: coll.getName(), query: {$expr: {$lte: [new Date(0), "$$NOW"]}}},
    {distinct: coll.getName(), key: "at", query: {$expr: {$lte: [new Date(0), "$$NOW"]}}},
    {aggregate: coll.getName(), pipeline: [], cursor: {}, let: {now: "$$NOW"}},
]) {
    assert.commandFailedWithCode(db.runCommand(command), 51144, tojson(command));
}
