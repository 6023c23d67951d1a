/**
 * A $text may begin the pipeline of a $unionWith or a $lookup, whatever the outer pipeline begins with, and its score is that of the inner documents.
 * Fails when the text index of the outer collection is asked for instead, or the outer score is taken for the inner one.
 */
const t = db.text_in_joins, other = db.text_in_joins_other;
t.drop();
other.drop();
assert.commandWorked(t.insert([{_id: 1, words: "one"}, {_id: 2, words: "two"}]));
assert.commandWorked(other.insert([{_id: 11, a: "one one", b: "x"}, {_id: 12, a: "x", b: "one"}, {_id: 13, a: "y"}]));
assert.commandWorked(other.createIndex({a: "text", b: "text"}, {weights: {b: 5}}));
const one = {$match: {$text: {$search: "one"}}}, score = {$project: {s: {$meta: "textScore"}}};
const scores = new Map(other.aggregate([one, score]).toArray().map((d) => [d._id, d.s]));
assert.eq([11, 12], [...scores.keys()].sort());
assert.neq(scores.get(11), scores.get(12));
const ids = (pipeline) => t.aggregate(pipeline).toArray().map((d) => d._id).sort();
assert.eq([1, 11, 12, 2], ids([{$unionWith: {coll: other.getName(), pipeline: [one]}}]).sort());
const [row] = t.aggregate([{$match: {_id: 1}}, {$lookup: {from: other.getName(), pipeline: [one, score, {$sort: {_id: 1}}], as: "all"}}]).toArray();
assert.eq([{_id: 11, s: scores.get(11)}, {_id: 12, s: scores.get(12)}], row.all);

// Both are searched, each with an index and a score of its own.
assert.commandWorked(t.createIndex({words: "text"}));
const own = t.aggregate([one, score]).toArray();
const both = t.aggregate([one, score, {$unionWith: {coll: other.getName(), pipeline: [one, score]}}]).toArray();
assert.sameMembers(own.concat([...scores].map(([_id, s]) => ({_id, s}))), both);
assert.commandFailedWithCode(db.runCommand({aggregate: other.getName(), cursor: {}, pipeline: [{$unionWith: {coll: "text_in_joins_none", pipeline: [{$match: {$text: {$search: 1}}}]}}]}), 14);
