/**
 * A query with several plans tries them once, and the plan that did best is remembered for all queries of its shape.
 * It fails if the trial takes a plan that reads more than another, if entries are shared between shapes, if they outlive
 * planCacheClear or the indexes they were made with, or if a plan that has become far dearer is kept.
 *
 * # Each shard has a cache of its own.
 * @tags: [assumes_against_mongod_not_mongos]
 */
const coll = db.plan_cache;
coll.drop();
const docs = [];
for (let i = 0; i < 300; i++) {
    docs.push({_id: i, a: i % 2, b: i, c: i % 3});
}
assert.commandWorked(coll.insert(docs));
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({b: 1}));

const entries = () => coll.aggregate([{$planCacheStats: {}}]).toArray();
assert.eq(entries(), []);
assert.eq(coll.find({_id: 5}).itcount(), 1);
assert.eq(coll.find({a: 1}).itcount(), 150);
assert.eq(entries(), [], "one plan needs no trial");

// By rule both indexes are as good as the other, and the one on a comes first.
const query = n => coll.find({a: n % 2, b: n});
assert.eq(query(7).itcount(), 1);
const [first] = entries();
assert.eq(first.cachedPlan.inputStage.indexName, "b_1", tojson(first));
assert.eq(first.isActive, false);
assert.eq(first.createdFromQuery.query, {a: 1, b: 7});
assert.eq(first.creationExecStats.length, 2);
assert.eq(query(8).itcount(), 1);
const [second] = entries();
assert.eq(second.isActive, true, "the second trial has confirmed it");
assert.eq(second.planCacheShapeHash, first.planCacheShapeHash);

const explained = query(9).explain("allPlansExecution");
assert.eq(explained.queryPlanner.winningPlan.isCached, true);
assert.eq(explained.queryPlanner.winningPlan.inputStage.indexName, "b_1");
assert.eq(explained.queryPlanner.rejectedPlans.map(p => p.inputStage.indexName), ["a_1"]);
assert.eq(explained.executionStats.allPlansExecution.length, 2);
assert.eq(explained.queryPlanner.planCacheShapeHash, first.planCacheShapeHash);
assert.eq(explained.queryPlanner.planCacheKey, first.planCacheKey);

// Another shape has an entry of its own.
assert.eq(coll.find({a: 1, b: {$gt: 290}}).itcount(), 5);
assert.eq(entries().length, 2);
assert.commandWorked(db.runCommand({planCacheClear: coll.getName(), query: {b: 0, a: 0}}));
assert.eq(entries().length, 1, "the order of fields is no part of the shape");
assert.commandWorked(coll.createIndex({c: 1}));
assert.eq(entries(), [], "with another index everything is tried again");
assert.eq(query(10).itcount(), 1);
assert.eq(entries().length, 1);
assert.commandWorked(db.runCommand({planCacheClear: coll.getName()}));
assert.eq(entries(), []);

// A filter that is too dear for a trial is remembered like any other.
const dear = {a: 1, b: {$gte: 0}, $where: "this.c === 1"};
assert.eq([50, 50], [1, 2].map(() => coll.find(dear).itcount()));
assert.eq([true], entries().map(e => e.isActive));

// 60 documents by the index on a, whatever b is; then 2,000, which whatever comes upon them finds out.
coll.drop();
assert.commandWorked(coll.insert([...Array(2060).keys()].map(i => ({_id: i, a: i < 60 ? 1 : 2, b: i, c: 1}))));
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({b: 1}));
const filter = a => ({a, b: {$gte: 0}, c: 2});
const users = {
    find: a => coll.find(filter(a)).itcount(),
    aggregate: a => coll.aggregate([{$match: filter(a)}]).itcount(),
    count: a => assert.commandWorked(db.runCommand({count: coll.getName(), query: filter(a)})).n,
    update: a => coll.updateMany(filter(a), {$set: {d: 1}}).modifiedCount,
    delete: a => coll.deleteMany(filter(a)).deletedCount,
};
for (const [name, use] of Object.entries(users)) {
    assert.commandWorked(db.runCommand({planCacheClear: coll.getName()}));
    assert.eq(0, use(1) + use(1) + use(1), name);
    assert.eq([true], entries().map(e => e.isActive), name);
    assert.eq(0, use(2), name);
    assert.eq([false], entries().map(e => e.isActive), name);
}

// What was long is not kept, be it the query or its shape.
assert.commandWorked(db.runCommand({planCacheClear: coll.getName()}));
assert.eq(60, coll.find({a: 1, b: {$gte: 0}, c: {$ne: "x".repeat(20000)}}).itcount());
const [long] = entries();
assert(long.planCacheKey && !long.hasOwnProperty("createdFromQuery"), tojson(Object.keys(long)));
assert.lt(long.estimatedSizeBytes, 1000);
assert.commandWorked(db.runCommand({planCacheClear: coll.getName()}));
const fields = [...Array(3000).keys()].map(i => ["field" + i, null]);
assert.eq(60, coll.find({a: 1, b: {$gte: 0}, ...Object.fromEntries(fields)}).itcount());
assert.eq([], entries());

assert.commandFailedWithCode(db.runCommand({aggregate: "plan_cache_none", pipeline: [{$planCacheStats: {}}], cursor: {}}), 50933);
assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$planCacheStats: {allHosts: 1}}], cursor: {}}), 13111);
