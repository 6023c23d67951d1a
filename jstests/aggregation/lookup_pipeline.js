/**
 * $lookup can run a pipeline over the other collection, with variables from the document at hand.
 * Fails when a variable holds another document's value, the equality is not applied with the pipeline, or nested joins mix up.
 */
const orders = db.lookup_pipeline_orders;
const items = db.lookup_pipeline_items;
orders.drop();
items.drop();
assert.commandWorked(orders.insert([{_id: 1, item: "pen", n: 5}, {_id: 2, item: "ink", n: 50}, {_id: 3, item: "cup", n: 1}]));
assert.commandWorked(items.insert([{_id: 10, sku: "pen", stock: 10}, {_id: 11, sku: "ink", stock: 20}, {_id: 12, sku: "pen", stock: 2}, {_id: 13, sku: "hat", stock: 9}]));

function run(lookup, ...more) {
    return orders.aggregate([{$lookup: Object.assign({from: items.getName(), as: "m"}, lookup)}].concat(more, [{$sort: {_id: 1}}])).toArray();
}
function matches(lookup) {
    return run(lookup).map(doc => doc.m.map(match => match._id).sort());
}
assert.eq([[10], [], []], matches({
    let: {sku: "$item", wanted: "$n"},
    pipeline: [{$match: {$expr: {$and: [{$eq: ["$sku", "$$sku"]}, {$gte: ["$stock", "$$wanted"]}]}}}],
}));
assert.eq([[10, 12], [11], []], matches({localField: "item", foreignField: "sku", pipeline: []}));
assert.eq([[12], [], []], matches({localField: "item", foreignField: "sku", pipeline: [{$match: {stock: {$lt: 5}}}]}));
assert.eq([[10], [], []], matches({
    localField: "item", foreignField: "sku", let: {wanted: "$n"}, pipeline: [{$match: {$expr: {$gte: ["$stock", "$$wanted"]}}}],
}));
// Uncorrelated: the same for all.
assert.eq([[13], [13], [13]], matches({pipeline: [{$match: {sku: "hat"}}]}));
assert.eq([2, 1, 0], run({localField: "item", foreignField: "sku", pipeline: [{$count: "n"}]}).map(doc => doc.m.length == 0 ? 0 : doc.m[0].n));
assert.eq([{stock: 10}, {stock: 2}], run({localField: "item", foreignField: "sku", pipeline: [{$sort: {stock: -1}}, {$project: {_id: 0, stock: 1}}]})[0].m);
assert.eq([{twice: 10}], run({let: {n: "$n"}, pipeline: [{$limit: 1}, {$project: {_id: 0, twice: {$multiply: ["$$n", 2]}}}]})[0].m);

// A join within a join sees the variables of both.
assert.eq([1, 1, 0], run({
    let: {sku: "$item", order: "$_id"},
    pipeline: [
        {$match: {$expr: {$eq: ["$sku", "$$sku"]}}},
        {$sort: {_id: 1}},
        {$limit: 1},
        {$lookup: {from: orders.getName(), let: {item: "$_id"}, pipeline: [{$match: {$expr: {$eq: ["$_id", "$$order"]}}}, {$set: {item: "$$item"}}], as: "back"}},
    ],
}).map((doc, i) => doc.m.length == 0 ? 0 : doc.m[0].back.length));

// Documents out of the request itself need no collection.
const written = orders.aggregate([{$match: {_id: 1}}, {$lookup: {pipeline: [{$documents: [{x: 1}, {x: 2}]}], as: "m"}}]).toArray();
assert.eq([{x: 1}, {x: 2}], written[0].m);

// Their fields are joined by as those of a collection are.
const joined = {localField: "_id", foreignField: "of", pipeline: [{$documents: [{of: 1, x: 1}, {of: 2, x: 2}]}, {$project: {x: 1}}], as: "m"};
assert.eq([[{x: 1}], [{x: 2}]], orders.aggregate([{$match: {_id: {$in: [1, 2]}}}, {$sort: {_id: 1}}, {$lookup: joined}]).toArray().map(doc => doc.m));

function refused(codes, lookup) {
    assert.commandFailedWithCode(db.runCommand({aggregate: orders.getName(), pipeline: [{$lookup: lookup}], cursor: {}}), codes, () => tojson(lookup));
}
refused(17276, {from: items.getName(), pipeline: [{$match: {$expr: "$$unknown"}}], as: "m"});
refused(51047, {from: items.getName(), pipeline: [{$out: "x"}], as: "m"});
refused(ErrorCodes.FailedToParse, {from: items.getName(), let: {x: "$n"}, localField: "item", foreignField: "sku", as: "m"});
refused([ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch], {from: items.getName(), pipeline: 1, as: "m"});
refused(40324, {from: items.getName(), pipeline: [{$unheardOf: 1}], as: "m"});

// A sub-pipeline that does not depend on the document is run once, unless it draws random numbers.
const many = db.lookup_pipeline_random;
many.drop();
assert.commandWorked(many.insert(Array.from({length: 30}, (_, i) => ({_id: i}))));
const drawn = {$project: {_id: 0, x: {$rand: {}}}};
const draws = {
    rand: [{$limit: 1}, drawn],
    sample: [{$sample: {size: 1}}, {$project: {_id: 0, x: "$_id"}}],
    nested: [{$limit: 1}, {$lookup: {from: many.getName(), pipeline: [{$limit: 1}, drawn], as: "y"}}, {$project: {x: {$first: "$y.x"}}}],
};
for (const [what, pipeline] of Object.entries(draws)) {
    const found = many.aggregate([{$lookup: {from: many.getName(), pipeline, as: "r"}}]).toArray();
    assert.eq([30, true], [found.length, found.every(d => d.r.length === 1)], what);
    assert.gt(new Set(found.map(d => d.r[0].x)).size, 1, what);
}

// What the stage needs and does not know, and a text search that comes too late.
function wrong(code, spec) {
    assert.commandFailedWithCode(db.runCommand({aggregate: "lookup_pipeline_any", pipeline: [{$lookup: spec}], cursor: {}}), code, () => tojson(spec));
}
wrong(ErrorCodes.FailedToParse, {});
wrong(ErrorCodes.FailedToParse, {From: "f", localField: "a", foreignField: "b", as: "c"});
wrong(ErrorCodes.FailedToParse, {from: "f", localField: "a", foreignField: "b"});
wrong(ErrorCodes.FailedToParse, {from: "f", localField: "a", foreignField: "b", as: null});
wrong(ErrorCodes.FailedToParse, {from: "f", localField: "a", foreignField: "b", as: "c", more: 1});
wrong(17313, {from: "f", as: "c", pipeline: [{$match: {}}, {$match: {$text: {$search: "x"}}}]});
