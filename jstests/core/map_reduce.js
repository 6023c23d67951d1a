/**
 * mapReduce combines what a map function emits, inline or into a collection, in each of the ways that `out` names.
 * Fails when a value is reduced twice or not at all, an option is not heard, or an output mode replaces what it should keep.
 *
 * @tags: [
 *   # A sharded collection cannot be replaced.
 *   assumes_unsharded_collection,
 * ]
 */
const t = db.map_reduce;
t.drop();
assert.commandWorked(t.insert([...Array(60).keys()].map((i) => ({_id: i, tags: ["a", "b", "c"].slice(0, i % 3 + 1), n: i}))));
const map = function() { this.tags.forEach((tag) => emit(tag, {count: 1, sum: this.n})); };
const reduce = function(key, values) {
    return {count: Array.sum(values.map((v) => v.count)), sum: Array.sum(values.map((v) => v.sum))};
};
const run = (more) => db.runCommand(Object.assign({mapReduce: t.getName(), map, reduce}, more));
const byKey = (rows) => rows.sort((x, y) => (x._id < y._id ? -1 : 1));
const sums = {a: {count: 60, sum: 1770}, b: {count: 40, sum: 1200}, c: {count: 20, sum: 610}};
const expected = ["a", "b", "c"].map((key) => ({_id: key, value: sums[key]}));

assert.eq(expected, byKey(assert.commandWorked(run({out: {inline: 1}})).results));
const shown = assert.commandWorked(run({
    out: {inline: 1}, query: {n: {$gte: 30}}, sort: {n: -1}, limit: 3, scope: {factor: 10, plus: Code("function(x) { return x + 1; }")},
    finalize: function(key, value) { return plus(value.count * factor); }, verbose: true, jsMode: true,
}));
assert.eq([{_id: "a", value: 31}, {_id: "b", value: 21}, {_id: "c", value: 11}], byKey(shown.results));
assert.eq(10, run({out: {inline: 1}, query: {$where: "this.n < 10"}, reduce: (k, v) => Array.sum(v), map: function() { emit(1, 1); }}).results[0].value);
const scoped = run({out: {inline: 1}, query: {_id: 1}, map: Code("function() { emit(1, a + b); }", {b: 2}), scope: {a: 1}});
assert.eq([{_id: 1, value: 3}], assert.commandWorked(scoped).results, "a function's variables and the command's");

// One value is not reduced, and a key may be anything.
const single = run({out: {inline: 1}, query: {_id: {$in: [0, 1]}}, map: function() { emit({n: this.n}, this.n); }, reduce: function() { return "reduced"; }});
assert.eq([0, 1], single.results.map((d) => d.value).sort());

// Into collections.
const out = db.map_reduce_out;
out.drop();
const contents = () => byKey(out.find().toArray());
assert.commandWorked(out.insert({_id: "old", value: 1}));
assert.eq(out.getName(), assert.commandWorked(run({out: out.getName()})).result);
assert.eq(expected, contents());
assert.commandWorked(out.insert({_id: "old", value: 1}));
assert.commandWorked(out.update({_id: "a"}, {value: "gone"}));
assert.commandWorked(run({out: {merge: out.getName()}}));
assert.eq(expected.concat({_id: "old", value: 1}), contents());
assert.commandWorked(run({out: {reduce: out.getName()}, query: {n: 59}}));
assert.eq({count: 61, sum: 1829}, out.findOne({_id: "a"}).value);
assert.eq(1, out.findOne({_id: "old"}).value);
const other = db.getSiblingDB("map_reduce_other");
assert.commandWorked(other.dropDatabase());
const reply = assert.commandWorked(run({out: {replace: "there", db: other.getName()}}));
assert.eq({db: other.getName(), collection: "there"}, reply.result);
assert.eq(3, other.there.count());
assert.commandWorked(other.dropDatabase());

// Stored functions are known to the command's functions.
assert.commandWorked(db.system.js.insert({_id: "tenfold", value: Code("function(x) { return x * 10; }")}));
const stored = run({out: {inline: 1}, query: {_id: 7}, map: function() { emit(1, tenfold(this.n)); }});
assert.eq([{_id: 1, value: 70}], assert.commandWorked(stored).results);
assert.eq(1, t.find({_id: 7, $where: "tenfold(this.n) == 70"}).itcount());
assert.commandWorked(db.system.js.remove({_id: "tenfold"}));

// Refusals.
assert.commandFailedWithCode(db.runCommand({mapReduce: t.getName(), map, reduce}), 40414);
assert.commandFailedWithCode(db.runCommand({mapReduce: t.getName(), map, out: {inline: 1}}), 40414);
assert.commandFailedWithCode(run({out: {inline: 1}, nonsense: 1}), 40415);
assert.commandFailedWithCode(run({out: 5}), ErrorCodes.BadValue);
assert.commandFailedWithCode(run({out: {}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(run({out: {inline: 1}, map: 5}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(run({out: {inline: 1}, map: "function() { nothing(); }"}), 139);
assert.commandFailedWithCode(run({out: {inline: 1}, map: "function() { for (;;); }", maxTimeMS: 300}), ErrorCodes.MaxTimeMSExpired);
assert.commandWorked(db.createView(t.getName() + "_view", t.getName(), []));
assert.commandFailedWithCode(
    db.runCommand({mapReduce: t.getName() + "_view", map, reduce, out: {inline: 1}}), ErrorCodes.CommandNotSupportedOnView);
assert(db.map_reduce_view.drop());
