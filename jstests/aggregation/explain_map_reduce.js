/**
 * A mapReduce is explained like the aggregation that it becomes, so one sees whether its query uses an index.
 * Fails when the explanation runs the output, shows another command than the one asked about, or does not show the index.
 */
import {planIndexes} from "jstests/libs/plan_stages.js";

const coll = db.explain_map_reduce;
const target = db.explain_map_reduce_target;
coll.drop();
target.drop();
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i, a: i % 4, b: i}))));
assert.commandWorked(coll.createIndex({a: 1}));
const map = "function() { emit(this.b % 2, 1); }";
const reduce = "function(key, values) { return Array.sum(values); }";
const command = {mapReduce: coll.getName(), map: map, reduce: reduce, query: {a: 3}, out: {inline: 1}};
function explain(changes, verbosity) {
    return db.runCommand({explain: Object.assign({}, command, changes), verbosity: verbosity || "queryPlanner"});
}

const explained = assert.commandWorked(explain({}));
assert.eq(["a_1"], planIndexes(explained));
assert.eq(coll.getName(), explained.command.mapReduce);
assert(!explained.hasOwnProperty("queryShapeHash"), tojson(explained));
assert(tojson(explained).includes("$_internalJsReduce"), tojson(explained));
assert.commandWorked(explain({}, "executionStats"));

// What would be written is not.
assert.commandWorked(explain({out: target.getName()}));
assert.commandWorked(explain({out: target.getName()}, "executionStats"));
assert.commandFailedWithCode(explain({out: {merge: target.getName()}}, "executionStats"), 51184);
assert.eq(0, target.countDocuments({}));

assert.commandFailedWithCode(explain({reduce: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(explain({nonsense: 1}), 40415);
