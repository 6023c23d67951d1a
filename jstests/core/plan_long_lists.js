/**
 * A list of thousands of values, as a program makes it of the keys it has at hand, is looked up in an index.
 * Fails when such a list is answered by a scan of the collection or of the whole index.
 */
import {planIndexes, planStageNames} from "jstests/libs/plan_stages.js";

const coll = db.plan_long_lists;
coll.drop();
const documents = [...Array(6000).keys()].map(i => ({_id: i, a: i % 3, b: i}));
assert.commandWorked(coll.insert(documents));
assert.commandWorked(coll.createIndex({a: 1, b: 1}));
const list = [...Array(5000).keys()].map(i => i + 500);

for (const [filter, index, count] of [[{_id: {$in: list}}, "_id_", 5000], [{a: 0, b: {$in: list}}, "a_1_b_1", 1667]]) {
    const explain = coll.find(filter).explain("executionStats");
    assert.eq([index], planIndexes(explain), tojson(planStageNames(explain)));
    assert.eq(count, explain.executionStats.nReturned);
    assert.lte(explain.executionStats.totalDocsExamined, count);
    assert.eq(count, coll.find(filter).itcount());
}
assert.eq(5000, coll.deleteMany({_id: {$in: list}}).deletedCount);
assert.eq(1000, coll.countDocuments({}));
