/**
 * Explaining a write shows what it would do and does not do it.
 * Fails when an explained write changes a document, or the counts are not those of the write.
 */
import {planHasStage} from "jstests/libs/plan_stages.js";

const coll = db.explain_writes;
coll.drop();
assert.commandWorked(coll.insert([...Array(10).keys()].map(i => ({_id: i, a: i % 2}))));
const before = coll.find().sort({_id: 1}).toArray();
const name = coll.getName();

function explain(command) {
    const plan = assert.commandWorked(db.runCommand({explain: command, verbosity: "executionStats"}));
    assert.eq(before, coll.find().sort({_id: 1}).toArray(), () => tojson(command));
    return plan;
}
/** The sum of a count over all stages of one name within execution statistics. */
function counted(node, stage, field) {
    if (node === null || typeof node !== "object") {
        return 0;
    }
    const own = node.stage === stage && node[field] !== undefined ? Number(node[field]) : 0;
    return own + Object.values(node).reduce((sum, child) => sum + counted(child, stage, field), 0);
}

const update = explain({update: name, updates: [{q: {a: 1}, u: {$set: {b: 1}}, multi: true}]});
assert(planHasStage(update, "UPDATE"), tojson(update));
assert.eq(5, counted(update.executionStats, "UPDATE", "nMatched"));
assert.eq(5, counted(update.executionStats, "UPDATE", "nWouldModify"));

const upsert = explain({update: name, updates: [{q: {_id: 77}, u: {$set: {b: 1}}, upsert: true}]});
assert.eq(1, counted(upsert.executionStats, "UPDATE", "nWouldUpsert"));

const removal = explain({delete: name, deletes: [{q: {a: 0}, limit: 0}]});
assert(planHasStage(removal, "DELETE"), tojson(removal));
assert.eq(5, counted(removal.executionStats, "DELETE", "nWouldDelete"));

explain({findAndModify: name, query: {_id: 1}, update: {$set: {b: 1}}});
explain({findAndModify: name, query: {_id: 1}, remove: true});

// One statement at a time can be explained.
assert.commandFailedWithCode(db.runCommand({explain: {update: name, updates: [{q: {}, u: {a: 1}}, {q: {}, u: {a: 1}}]}}), ErrorCodes.InvalidLength);
assert.commandFailedWithCode(db.runCommand({explain: {insert: name, documents: [{}]}}), [ErrorCodes.IllegalOperation, ErrorCodes.CommandNotFound, ErrorCodes.InvalidOptions]);
