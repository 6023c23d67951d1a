/**
 * A malformed expression is refused when the pipeline is parsed, whether or not a document ever meets it.
 * Fails when an unknown operator, variable or a wrong number of arguments is taken, or an error appears only with data.
 */
const coll = db.expression_errors;
coll.drop();
assert.commandWorked(db.expression_errors_other.insert({}));

function refused(codes, expression) {
    const command = {aggregate: coll.getName(), pipeline: [{$addFields: {v: expression}}], cursor: {}};
    assert.commandFailedWithCode(db.runCommand(command), codes, () => tojson(expression));
}
// The database is there, the collection is not: nothing is evaluated.
refused([168, 31325], {$unheardOf: 1});
refused([15983, 40181], {$add: 1, $subtract: [1, 2]});
refused(16020, {$divide: [1, 2, 3]});
refused(16020, {$not: [1, 2]});
refused(17276, "$$nope");
refused(17276, "$$nope.a");
refused(16872, "$");
refused([16410, 15998], "$a.$b");
refused([40353, 15998], "$a..b");
refused(ErrorCodes.FailedToParse, {$let: {vars: {Upper: 1}, in: 1}});
refused(ErrorCodes.FailedToParse, {$map: {input: [], as: "1x", in: 1}});
refused(16879, {$map: {input: [], as: "x", in: 1, more: 1}});
refused(16880, {$map: {as: "x", in: 1}});
refused(28648, {$filter: {cond: true}});
refused(28650, {$filter: {input: []}});
refused(40075, {$reduce: 1});
refused([17276], {$map: {input: [1], as: "x", in: "$$y"}});

// System variables are there.
assert.commandWorked(coll.insert({_id: 1, a: {b: 2}}));
const doc = coll.aggregate([{$project: {root: "$$ROOT.a.b", current: "$$CURRENT.a.b", now: {$type: "$$NOW"}, remove: "$$REMOVE"}}]).toArray()[0];
assert.eq({_id: 1, root: 2, current: 2, now: "date"}, doc);
// Within one aggregation there is one present.
const nows = coll.aggregate([{$project: {a: "$$NOW"}}, {$set: {b: "$$NOW"}}]).toArray()[0];
assert.eq(nows.a, nows.b);

// A variable may be called CURRENT, and is then what plain paths begin at.
const shadowed = coll.aggregate([{$project: {
    map: {$map: {input: [{q: 1}, {q: 2}], as: "CURRENT", in: "$q"}},
    let: {$let: {vars: {CURRENT: {q: 5}}, in: "$q"}},
    filter: {$filter: {input: [{q: 1}, {q: 2}], as: "CURRENT", cond: {$eq: ["$q", 2]}}},
}}]).toArray()[0];
assert.eq({_id: 1, map: [1, 2], let: 5, filter: [{q: 2}]}, shadowed);
