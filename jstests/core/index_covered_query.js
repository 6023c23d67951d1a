/**
 * A query that asks only for indexed fields need not read documents.
 * Fails when such a query fetches documents, or a query that does need them is answered from keys alone.
 */
import {planHasStage} from "jstests/libs/plan_stages.js";

const coll = db.index_covered_query;
coll.drop();
assert.commandWorked(coll.insert([...Array(50).keys()].map(i => ({_id: i, a: i % 5, b: "v" + i, c: i}))));
assert.commandWorked(coll.createIndex({a: 1, b: 1, _id: 1}));

function explain(filter, projection) {
    return coll.find(filter, projection).hint({a: 1, b: 1, _id: 1}).explain("executionStats");
}
const covered = explain({a: 3}, {_id: 0, a: 1, b: 1});
assert(!planHasStage(covered, "COLLSCAN"));
assert.eq(10, covered.executionStats.nReturned);
assert.eq(["v13", "v18", "v23", "v28", "v3", "v33", "v38", "v43", "v48", "v8"],
          coll.find({a: 3}, {_id: 0, b: 1}).hint({a: 1, b: 1, _id: 1}).sort({b: 1}).toArray().map(doc => doc.b));
assert.eq([{a: 3, b: "v3"}], coll.find({a: 3, b: "v3"}, {_id: 0, a: 1, b: 1}).toArray());

const fetched = explain({a: 3}, {a: 1, c: 1});
assert(planHasStage(fetched, "FETCH"), tojson(fetched));
assert.eq(10, fetched.executionStats.totalDocsExamined);

// A multikey index cannot cover the field that is an array.
assert.commandWorked(coll.insert({_id: "array", a: 3, b: ["x", "y"]}));
assert.eq({a: 3, b: ["x", "y"]}, coll.findOne({a: 3, b: "x"}, {_id: 0, a: 1, b: 1}));

// Missing and null are one key, so null never comes from the key alone where the field may be missing.
assert.commandWorked(coll.insert({_id: "missing", a: 9}));
assert.eq({a: 9}, coll.findOne({a: 9}, {_id: 0, a: 1, b: 1}));
