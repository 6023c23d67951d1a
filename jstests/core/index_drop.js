/**
 * Indexes are dropped by name, by key or all at once, but never the one over _id.
 * Fails when another index goes, the _id index goes, or one of several unknown names lets the others go.
 */
const coll = db.index_drop;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: 1, b: 2}));
const own = coll.getIndexes().map(index => index.name);

function reset() {
    for (const key of [{a: 1}, {b: 1}, {a: 1, b: -1}, {c: 1}]) {
        assert.commandWorked(coll.createIndex(key));
    }
}
function names() {
    return coll.getIndexes().map(index => index.name).filter(name => !own.includes(name)).sort();
}
function drop(index) {
    return db.runCommand({dropIndexes: coll.getName(), index: index});
}

reset();
assert.commandWorked(drop("a_1"));
assert.eq(["a_1_b_-1", "b_1", "c_1"], names());
assert.commandWorked(drop({a: 1, b: -1}));
assert.eq(["b_1", "c_1"], names());
assert.commandWorked(drop(["b_1", "c_1"]));
assert.eq([], names());

reset();
assert.commandFailedWithCode(drop("none"), ErrorCodes.IndexNotFound);
assert.commandFailedWithCode(drop({none: 1}), ErrorCodes.IndexNotFound);
assert.commandFailedWithCode(drop(["a_1", "none"]), ErrorCodes.IndexNotFound);
assert.commandFailedWithCode(drop("_id_"), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(drop({_id: 1}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(drop(1), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({dropIndexes: coll.getName()}), 40414);
assert.eq(4, names().length);

assert.commandWorked(drop("*"));
assert.eq([], names());
assert.contains("_id_", coll.getIndexes().map(index => index.name));
assert.commandFailedWithCode(db.runCommand({dropIndexes: "index_drop_none", index: "*"}), ErrorCodes.NamespaceNotFound);

// Queries go on without it.
assert.eq([{_id: 1, a: 1, b: 2}], coll.find({a: 1}).toArray());
