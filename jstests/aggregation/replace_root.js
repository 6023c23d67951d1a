/**
 * $replaceRoot and $replaceWith make a part of a document, or a computed one, the whole.
 * Fails when fields of the old document survive, or something that is no document becomes one.
 */
const coll = db.replace_root;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, name: "n", o: {a: 1, b: {c: 2}}}, {_id: 2, name: "m", o: {a: 5}}]));

function run(...pipeline) {
    return coll.aggregate([{$sort: {_id: 1}}].concat(pipeline)).toArray();
}
assert.eq([{a: 1, b: {c: 2}}, {a: 5}], run({$replaceRoot: {newRoot: "$o"}}));
assert.eq([{a: 1, b: {c: 2}}, {a: 5}], run({$replaceWith: "$o"}));
assert.eq([{c: 2}], run({$match: {_id: 1}}, {$replaceWith: "$o.b"}));
assert.eq([{x: "n", y: {z: 1}}, {x: "m", y: {z: 5}}], run({$replaceWith: {x: "$name", y: {z: "$o.a"}}}));
assert.eq([{k: 0, _id: 1, name: "n", a: 1, b: {c: 2}}], run({$match: {_id: 1}}, {$replaceWith: {$mergeObjects: [{k: 0}, "$$ROOT", "$o"]}}, {$unset: "o"}));
assert.eq([{n: 1}, {n: 2}], run({$replaceWith: {$arrayToObject: [[["n", "$_id"]]]}}));
assert.eq([{}, {}], run({$replaceWith: {}}));
assert.eq([{a: 1}, {a: 5}], run({$replaceWith: "$o"}, {$project: {a: 1}}));
assert.eq([{c: 2}, {c: 0}], run({$replaceWith: {$ifNull: ["$o.b", {c: 0}]}}));

function refused(codes, stage) {
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [stage], cursor: {}}), codes, () => tojson(stage));
}
refused(40228, {$replaceRoot: {newRoot: "$name"}});
refused(40228, {$replaceWith: "$o.b"});
refused(40228, {$replaceWith: "$none"});
refused(40228, {$replaceWith: 5});
refused([40229, ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch], {$replaceRoot: "$o"});
refused([40231, 40414], {$replaceRoot: {}});
refused([40230, 40415], {$replaceRoot: {newRoot: "$o", more: 1}});
refused(40228, {$replaceRoot: {newRoot: {$literal: [1]}}});
