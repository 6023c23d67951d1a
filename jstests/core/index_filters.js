/**
 * planCacheSetFilter holds the queries of a shape to the indexes it names, whatever their hints and whichever command asks.
 * It fails if a filter is taken for queries of another shape, is not taken for one of its own, or outlives its removal.
 */
const coll = db.index_filters;
coll.drop();
for (let i = 0; i < 20; i++) {
    assert.commandWorked(coll.insert({_id: i, a: i, b: i, c: i}));
}
assert.commandWorked(coll.createIndex({a: 1, b: 1}));
assert.commandWorked(coll.createIndex({a: 1, c: 1}));
const name = coll.getName();

// The stages of the plan on each shard.
function plans(command) {
    const reply = assert.commandWorked(db.runCommand({explain: command, verbosity: "queryPlanner"}));
    const planner = reply.queryPlanner || Object.values(reply.shards)[0].queryPlanner;
    const text = tojson(planner);
    return {filtered: text.includes('"indexFilterSet" : true') || text.includes('"indexFilterSet": true'), text: text};
}
function usesOnly(command, index, others) {
    const {filtered, text} = plans(command);
    assert(filtered, text);
    assert(text.includes('"' + index + '"'), text);
    others.forEach(other => assert(!text.includes('"' + other + '"'), text));
}
const set = (query, indexes, more) =>
    assert.commandWorked(db.runCommand(Object.assign({planCacheSetFilter: name, query: query, indexes: indexes}, more)));
const list = () => assert.commandWorked(db.runCommand({planCacheListFilters: name})).filters;

assert.eq(list(), []);
set({a: 1}, [{a: 1, c: 1}]);
for (const command of [{find: name, filter: {a: 5}}, {find: name, filter: {a: 5}, hint: "a_1_b_1"}, {count: name, query: {a: 5}},
                       {aggregate: name, pipeline: [{$match: {a: 5}}], cursor: {}}, {distinct: name, key: "a", query: {a: 5}}]) {
    usesOnly(command, "a_1_c_1", ["a_1_b_1"]);
}
set({a: 9}, ["a_1_b_1"]);
assert.eq(list(), [{query: {a: 9}, sort: {}, projection: {}, indexes: ["a_1_b_1"]}], "the later one counts");
usesOnly({find: name, filter: {a: 5}}, "a_1_b_1", ["a_1_c_1"]);
assert.eq(coll.find({a: 5}).itcount(), 1);
assert(!plans({find: name, filter: {a: 5, b: 5}}).filtered);
assert(!plans({find: name, filter: {a: 5}, sort: {b: 1}}).filtered);

set({b: 1}, [{none: 1}]);
assert(plans({find: name, filter: {b: 3}}).text.includes("COLLSCAN"));
assert.commandWorked(db.runCommand({planCacheClearFilters: name, query: {a: 0}}));
assert.eq(list().map(f => f.query), [{b: 1}]);
assert.commandWorked(db.runCommand({planCacheClearFilters: name}));
assert.eq(list(), []);
assert(!plans({find: name, filter: {a: 5}}).filtered);

set({a: 1}, [{a: 1}]);
assert(coll.drop());
assert.commandWorked(coll.insert({a: 1}));
assert.eq(list(), [], "a filter goes with its collection");

const refused = command => assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.BadValue);
refused({planCacheSetFilter: name, indexes: [{a: 1}]});
refused({planCacheSetFilter: name, query: 1, indexes: [{a: 1}]});
refused({planCacheSetFilter: name, query: {a: 1}});
refused({planCacheSetFilter: name, query: {a: 1}, indexes: []});
refused({planCacheSetFilter: name, query: {a: 1}, indexes: [{}]});
refused({planCacheSetFilter: name, query: {a: 1}, indexes: [1]});
