/**
 * An update written as a pipeline computes the new document from the old one.
 * Fails when a stage sees another document, a stage that is not allowed is taken, or an unchanged result counts as modified.
 */
const coll = db.update_pipeline;

function updated(before, pipeline, options) {
    coll.drop();
    assert.commandWorked(coll.insert(Object.assign({_id: 1}, before)));
    const result = assert.commandWorked(coll.update({_id: 1}, pipeline, options));
    const doc = coll.findOne();
    delete doc._id;
    return [doc, result.nModified];
}

assert.eq([{a: 1, b: 2}, 1], updated({a: 1}, [{$set: {b: {$add: ["$a", 1]}}}]));
assert.eq([{a: 1, b: 2, c: 4}, 1], updated({a: 1}, [{$addFields: {b: 2}}, {$set: {c: {$multiply: ["$b", 2]}}}]));
assert.eq([{b: 2}, 1], updated({a: 1, b: 2, c: 3}, [{$unset: ["a", "c"]}]));
assert.eq([{b: 2}, 1], updated({a: 1, b: 2}, [{$project: {b: 1}}]));
assert.eq([{n: {x: 1}}, 1], updated({n: {x: 1}, o: 2}, [{$replaceWith: {n: "$n"}}]));
assert.eq([{x: 1}, 1], updated({n: {x: 1}}, [{$replaceRoot: {newRoot: "$n"}}]));
assert.eq([{a: 5, b: 1}, 1], updated({a: 1, b: 5}, [{$set: {a: "$b", b: "$a"}}]));
assert.eq([{a: 1}, 0], updated({a: 1}, [{$set: {a: 1}}]));
assert.eq([{a: 1}, 0], updated({a: 1}, []));

// Dollar signs in constants are literal when asked for; variables come from c and let.
assert.eq([{a: "$b"}, 1], updated({}, [{$set: {a: {$literal: "$b"}}}]));
assert.commandWorked(db.runCommand({update: coll.getName(), updates: [{q: {_id: 1}, u: [{$set: {a: "$$v"}}], c: {v: 42}}]}));
assert.eq({_id: 1, a: 42}, coll.findOne());

// An upsert runs over the fields of the query.
assert.commandWorked(coll.update({_id: 9, k: 4}, [{$set: {double: {$multiply: ["$k", 2]}}}], {upsert: true}));
assert.eq({_id: 9, k: 4, double: 8}, coll.findOne({_id: 9}));

for (const stage of [{$match: {}}, {$group: {_id: null}}, {$limit: 1}, {$lookup: {from: "x", as: "y", pipeline: []}}, {$out: "x"}]) {
    assert.commandFailedWithCode(coll.update({_id: 1}, [stage]), ErrorCodes.InvalidOptions, () => tojson(stage));
}
assert.commandFailedWithCode(coll.update({_id: 1}, [{$unheardOf: 1}]), 40324);
// $fill stands for $addFields, unless it looks at other documents.
assert.commandFailedWithCode(coll.update({_id: 1}, [{$fill: {sortBy: {a: 1}, output: {a: {method: "locf"}}}}]), ErrorCodes.InvalidOptions);
assert.commandWorked(coll.insert({_id: "filled", a: null, b: 1}));
assert.commandWorked(coll.update({_id: "filled"}, [{$fill: {output: {a: {value: "$b"}, b: {value: 2}}}}]));
assert.eq({_id: "filled", a: 1, b: 1}, coll.findOne({_id: "filled"}));
assert.commandFailedWithCode(coll.update({_id: 1}, [{$set: {_id: 2}}]), ErrorCodes.ImmutableField);
assert.commandFailedWithCode(coll.update({_id: 1}, [{$set: {a: {$divide: [1, "$zero"]}}}, {$set: {b: {$toInt: "x"}}}]),
                             ErrorCodes.ConversionFailure);
assert.commandFailedWithCode(coll.update({_id: 1}, [{$set: {a: 1}}], {arrayFilters: [{x: 1}]}), ErrorCodes.FailedToParse);
assert.eq({_id: 1, a: 42}, coll.findOne({_id: 1}));
