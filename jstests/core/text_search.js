/**
 * A text index finds documents by words, phrases and exclusions, in its languages, with the documented scores.
 * Fails when a document is found by a word it has not, missed by one it has, or scored by another formula.
 */
// A collection has one text index; where the fixture shards it, its answers are the same.
import {planIndexes, planStages} from "jstests/libs/plan_stages.js";

const coll = db.text_search;
coll.drop();
assert.commandWorked(coll.createIndex({title: "text", body: "text"}, {weights: {title: 10}, name: "words"}));
const index = coll.getIndexes().find(made => made.name === "words");
assert.docEq({
    v: 2, key: {_fts: "text", _ftsx: 1}, name: "words", weights: {body: 1, title: 10}, default_language: "english",
    language_override: "language", textIndexVersion: 3,
}, index);
assert.commandWorked(coll.insert([
    {_id: 1, title: "Coffee Shopping", body: "where to buy coffee", n: 1},
    {_id: 2, title: "Tea", body: "green tea and black tea", n: 2},
    {_id: 3, title: "Cafés of Paris", body: "a café serves coffee", n: 3},
    {_id: 4, title: "chevaux", body: "les chevaux courent", language: "french", n: 4},
    {_id: 5, title: 7, n: 5},
]));
const ids = (text, more) => coll.find(Object.assign({$text: text}, more)).sort({_id: 1}).toArray().map(doc => doc._id);

assert.eq([1, 3], ids({$search: "coffee"}));
assert.eq([1, 2, 3], ids({$search: "teas cafe shop"}), "words are compared by their stems");
assert.eq([1], ids({$search: "coffee -cafe"}));
assert.eq([2], ids({$search: "\"green tea\""}));
assert.eq([], ids({$search: "\"tea green\""}));
assert.eq([], ids({$search: "the and"}), "stop words find nothing");
assert.eq([], ids({$search: "-tea"}));
assert.eq([3], ids({$search: "Cafe"}));
assert.eq([], ids({$search: "Cafe", $diacriticSensitive: true}));
assert.eq([2], ids({$search: "Tea", $caseSensitive: true}));
assert.eq([4], ids({$search: "cheval", $language: "french"}));
assert.eq([3], ids({$search: "coffee"}, {n: {$gt: 1}}));
assert.eq(2, coll.count({$text: {$search: "coffee"}}));
assert.eq(2, coll.countDocuments({$text: {$search: "coffee"}}));

// Scores: weight * sum of halves * (0.5 + 0.5 * share), a tenth more where the string is the word.
const scored = coll.find({$text: {$search: "coffee tea"}}, {_id: 1, score: {$meta: "textScore"}})
    .sort({score: {$meta: "textScore"}}).toArray();
const byId = Object.fromEntries(scored.map(doc => [doc._id, doc.score]));
assert.close(10 * 0.75 + (0.5 / 2 + 0.5), byId[1]);
assert.close(10 * 1.1 + 1.5 * (0.5 * 2 / 4 + 0.5), byId[2]);
assert.eq([2, 1, 3], scored.map(doc => doc._id));
assert.eq(["_id", "body", "n", "score", "title"],
    Object.keys(coll.find({$text: {$search: "green"}}, {score: {$meta: "textScore"}}).next()).sort());
assert.eq([{_id: 2, s: byId[2]}, {_id: 1, s: byId[1]}], coll.aggregate([
    {$match: {$text: {$search: "coffee tea"}}}, {$sort: {x: {$meta: "textScore"}}}, {$limit: 2}, {$project: {s: {$meta: "textScore"}}},
]).toArray());
assert.eq([{_id: null, most: byId[2]}], coll.aggregate([
    {$match: {$text: {$search: "coffee tea"}}}, {$group: {_id: null, most: {$max: {$meta: "textScore"}}}},
]).toArray());

// Documents enter and leave with their updates.
assert.commandWorked(coll.updateOne({_id: 5}, {$set: {body: "more coffee"}}));
assert.commandWorked(coll.updateOne({$text: {$search: "shopping"}}, {$set: {title: "none", body: "none"}}));
assert.eq([3, 5], ids({$search: "coffee"}));
assert.eq(1, coll.deleteMany({$text: {$search: "green"}}).deletedCount);
assert.eq([], ids({$search: "tea"}));

const refused = (code, filter, more) => assert.commandFailedWithCode(
    db.runCommand(Object.assign({find: coll.getName(), filter: filter}, more)), code, () => tojson(filter));
refused(ErrorCodes.NoSuchKey, {$text: {}});
refused(ErrorCodes.BadValue, {$text: {$search: "x", $unknown: 1}});
refused(ErrorCodes.BadValue, {$text: {$search: "x", $language: "klingon"}});
refused(ErrorCodes.TypeMismatch, {$text: {$search: 1}});
refused(ErrorCodes.BadValue, {$and: [{$text: {$search: "x"}}, {$text: {$search: "y"}}]});
refused(ErrorCodes.BadValue, {$nor: [{$text: {$search: "x"}}]});
refused(ErrorCodes.BadValue, {$text: {$search: "x"}}, {hint: "words"});
refused(ErrorCodes.BadValue, {$text: {$search: "x"}}, {sort: {$natural: 1}});
refused(ErrorCodes.NoQueryExecutionPlans, {$or: [{$text: {$search: "x"}}, {n: 1}]});
refused(40218, {}, {projection: {s: {$meta: "textScore"}}});
assert.commandFailedWithCode(coll.createIndex({n: "text"}), ErrorCodes.IndexOptionsConflict);
assert.commandFailedWithCode(db.runCommand({
    aggregate: coll.getName(), pipeline: [{$limit: 1}, {$match: {$text: {$search: "x"}}}], cursor: {},
}), 17313);
assert.commandWorked(coll.dropIndex("words"));
refused(ErrorCodes.IndexNotFound, {$text: {$search: "x"}});
assert.commandFailedWithCode(coll.createIndex({a: "text", b: 1, c: "text"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(coll.createIndex({a: "text"}, {weights: {a: -1}}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(coll.createIndex({a: "text"}, {default_language: "klingon"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(coll.createIndex({a: "text"}, {collation: {locale: "en"}}), ErrorCodes.CannotCreateIndex);

// Fields beside the text: those before it must be held to a value. A wildcard reads every string.
assert.commandWorked(coll.createIndex({n: 1, "$**": "text"}));
assert.eq([5], ids({$search: "coffee"}, {n: 5}));
assert.eq(["n_1_$**_text"], planIndexes(coll.find({$text: {$search: "coffee"}, n: 5}).explain()));
refused(ErrorCodes.NoQueryExecutionPlans, {$text: {$search: "coffee"}});

// A document's own language is a string that names one.
for (const [document, code] of [[{language: 5}, 17261], [{language: "klingon"}, 17262], [{part: {language: "klingon"}}, 17262]]) {
    assert.commandFailedWithCode(coll.insert(Object.assign({_id: 100, n: 1, t: "words"}, document)), code, tojson(document));
}
assert.commandFailedWithCode(coll.update({_id: 5}, {$set: {language: "klingon"}}), 17262);
assert.commandWorked(coll.insert({_id: 100, n: 1, t: "chevaux", language: "french"}));
assert.eq([100], ids({$search: "cheval", $language: "french"}, {n: 1}));
assert.commandWorked(coll.dropIndexes());
assert.commandWorked(coll.insert({_id: 101, t: "words", language: "klingon"}));
assert.commandFailedWithCode(coll.createIndex({t: "text"}), 17262);

// Words and distances bring an order each.
assert.commandWorked(coll.remove({_id: 101}));
assert.commandWorked(coll.createIndexes([{t: "text"}, {at: "2dsphere"}]));
refused(ErrorCodes.BadValue, {$text: {$search: "coffee"}, at: {$near: {$geometry: {type: "Point", coordinates: [0, 0]}}}});

// What explain tells of the words, of the fields before them, and of what else is asked.
assert.commandWorked(coll.dropIndexes());
assert.commandWorked(coll.createIndex({n: 1, t: "text"}));
const stages = planStages(coll.find({$text: {$search: 'Coffee -tea "black coffee" -"iced coffee"'}, n: 5, _id: {$gt: 0}}).explain());
const words = stages.find(stage => stage.stage === "TEXT_MATCH");
assert.eq(["TEXT_MATCH", {n: 5}, "n_1_t_text", 3], [words.stage, words.indexPrefix, words.indexName, words.textIndexVersion]);
assert.eq({terms: ["black", "coffe"], negatedTerms: ["tea"], phrases: ["black coffee"], negatedPhrases: ["iced coffee"]}, words.parsedTextQuery);
assert.eq(["FETCH", "IXSCAN"], [words.inputStage.stage, words.inputStage.inputStage.stage]);
// Each shard has such a plan.
const filters = stages.filter(stage => stage.stage === "FETCH" && stage.filter !== undefined).map(stage => stage.filter);
assert(filters.length > 0 && filters.every(filter => friendlyEqual({_id: {$gt: 0}}, filter)), tojson(filters));

// A partial index finds the words of the documents that it has, for queries that ask for no others.
assert.commandWorked(coll.dropIndexes());
assert.commandWorked(coll.createIndex({t: "text"}, {partialFilterExpression: {n: {$gt: 5}}}));
assert.commandWorked(coll.insert([{_id: 102, n: 6, t: "six"}, {_id: 103, n: 4, t: "six"}]));
assert.eq([102], ids({$search: "six"}, {n: 6}));
refused(ErrorCodes.NoQueryExecutionPlans, {$text: {$search: "six"}});
refused(ErrorCodes.NoQueryExecutionPlans, {$text: {$search: "six"}, n: {$gt: 3}});

// A search that tells cases apart finds fewer documents, and scores them as any search does.
assert.commandWorked(coll.dropIndexes());
assert.commandWorked(coll.createIndex({t: "text"}));
assert.commandWorked(coll.insert([{_id: 104, t: "Mixed mixed"}, {_id: 105, t: "mixed"}]));
assert.eq([{_id: 104, s: 1.5}],
    coll.find({$text: {$search: "Mixed", $caseSensitive: true}}, {_id: 1, s: {$meta: "textScore"}}).toArray());

// Punctuation stands between words; other signs are words.
assert.commandWorked(coll.insert([{_id: 106, t: "I love \u{1F600}"}, {_id: 107, t: "\u00ABquoted\u00BB\u2014dashed"}]));
assert.eq([106], ids({$search: "\u{1F600}"}));
assert.eq([107], ids({$search: "quoted"}));
assert.eq([107], ids({$search: "dashed"}));
assert.eq([107], ids({$search: "nothing\0dashed"}));

// The fields beside the text hold no arrays, nor does the way to them lead through one but by a position.
assert.commandWorked(coll.dropIndexes());
assert.commandWorked(coll.createIndex({"a.b": 1, t: "text", "c.0": 1}));
for (const document of [{a: [{b: 1}]}, {a: {b: [1]}}, {a: {b: []}}, {c: [[1]]}]) {
    assert.commandFailedWithCode(
        coll.insert(Object.assign({t: "x"}, document)), ErrorCodes.CannotBuildIndexKeys, tojson(document));
}
assert.commandWorked(coll.insert({_id: 108, a: {b: 1}, c: [5], t: "beside"}));
assert.eq([108], ids({$search: "beside"}, {"a.b": 1}));
