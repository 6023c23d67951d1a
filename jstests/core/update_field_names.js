/**
 * Names that begin with a dollar sign or hold a dot mean something in updates, so the server guards which may be stored.
 * Fails when an empty part of a path or an unknown operator is taken, or a legal odd name is refused or mangled.
 */
const coll = db.update_field_names;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));

assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {"a.": 1}}), ErrorCodes.EmptyFieldName);
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {".a": 1}}), ErrorCodes.EmptyFieldName);
assert.commandFailedWithCode(coll.update({_id: 1}, {$unheardOf: {a: 1}}), ErrorCodes.FailedToParse);

// Within a value, and in inserted documents, dots and dollars are ordinary characters.
const odd = {"a.b": 1, c: {"$d": 2, "e.f": {"": 3}}, "": 4, "x$y": 5};
assert.commandWorked(db.runCommand({insert: coll.getName(), documents: [Object.assign({_id: 2}, odd)]}));
assert.eq(Object.assign({_id: 2}, odd), coll.findOne({_id: 2}));
assert.commandWorked(coll.update({_id: 1}, {$set: {v: {"p.q": 1, "$r": 2}}}));
assert.eq({"p.q": 1, "$r": 2}, coll.findOne({_id: 1}).v);
assert.commandWorked(coll.update({_id: 1}, {"k.l": 1}));
assert.eq({_id: 1, "k.l": 1}, coll.findOne({_id: 1}));
// A path does not find the name with a dot in it, $getField does.
assert.eq(0, coll.find({"k.l": 1}).itcount());
assert.eq(1, coll.find({$expr: {$eq: [{$getField: "k.l"}, 1]}}).itcount());

// Names of many bytes and of other alphabets are kept as they are.
for (const name of ["ключ", "键", "a b", "x".repeat(1000), "__proto", "0", "-1"]) {
    assert.commandWorked(coll.update({_id: 3}, {$set: {[name]: 1}}, {upsert: true}));
    assert.eq(1, coll.find({[name]: 1}).itcount(), name);
}
