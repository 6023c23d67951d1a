/**
 * A hint forces an index, by name or by key pattern, for every command that searches.
 * Fails when a hinted index is not used, or an unknown one is passed over in silence.
 */
const coll = db.cursor_hint;
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, a: 1}, {_id: 2, a: 2}, {_id: 3}]));
assert.commandWorked(coll.createIndex({a: 1}, {name: "sparse_a", sparse: true}));
const name = coll.getName();

// A sparse index knows two of three documents, which shows whether it is used.
assert.eq(3, coll.find().itcount());
assert.eq(2, coll.find().hint("sparse_a").itcount());
assert.eq(2, coll.find().hint({a: 1}).itcount());
assert.eq(2, coll.aggregate([{$match: {}}], {hint: "sparse_a"}).itcount());
assert.eq(2, assert.commandWorked(db.runCommand({count: name, query: {}, hint: "sparse_a"})).n);
assert.eq(2, assert.commandWorked(db.runCommand({distinct: name, key: "_id", hint: "sparse_a"})).values.length);

for (const hint of ["nope", {nope: 1}, {a: -1}]) {
    const commands = [
        {find: name, hint: hint},
        {count: name, query: {a: 1}, hint: hint},
        {aggregate: name, pipeline: [], cursor: {}, hint: hint},
        {findAndModify: name, query: {a: 1}, update: {$set: {x: 1}}, hint: hint},
        {update: name, updates: [{q: {a: 1}, u: {$set: {x: 1}}, hint: hint}]},
        {delete: name, deletes: [{q: {a: 77}, limit: 0, hint: hint}]},
    ];
    for (const command of commands) {
        assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.BadValue, () => tojson(command));
    }
}
assert.commandFailedWithCode(db.runCommand({find: name, hint: 1}), [ErrorCodes.FailedToParse, ErrorCodes.TypeMismatch]);

assert.commandWorked(coll.update({}, {$set: {touched: true}}, {multi: true, hint: {a: 1}}));
assert.eq([1, 2], coll.find({touched: true}).sort({_id: 1}).toArray().map(doc => doc._id));
assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {}, limit: 0, hint: "sparse_a"}]}));
assert.eq([{_id: 3}], coll.find().toArray());
