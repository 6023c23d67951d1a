/**
 * `{$meta: "indexKey"}` and returnKey tell by which key of an index a document was found.
 * Fails when the key is that of the document instead of the entry, is shown where no index was used, or stays in documents
 * that were not asked for it.
 */
const coll = db.index_keys_as_metadata;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 1, a: 10, b: "x", tags: ["apple", "banana"], h: 5, w: {k: 7}, t: "apple pie"},
    {_id: 2, a: 30, b: "y", tags: ["cherry"], h: 6, w: {k: 8}, t: "cherry pie"},
    {_id: 3, b: "z"},
]));
for (const key of [{a: 1, b: -1}, {tags: 1}, {h: "hashed"}, {"w.$**": 1}, {t: "text"}]) {
    assert.commandWorked(coll.createIndex(key));
}
const key = {$meta: "indexKey"};
function keys(filter, ...stages) {
    const pipeline = [{$match: filter}, ...stages, {$project: {k: key}}];
    return coll.aggregate(pipeline).toArray().sort((x, y) => x._id - y._id);
}

assert.eq([{_id: 1, k: {a: 10, b: "x"}}, {_id: 2, k: {a: 30, b: "y"}}], keys({a: {$gt: 0}}));
// Behind a sort and other stages, too; a missing field has the key of null.
assert.eq([{_id: 1, k: {a: 10, b: "x"}}, {_id: 2, k: {a: 30, b: "y"}}],
          keys({a: {$gt: 0}}, {$sort: {b: -1}}, {$set: {more: 1}}));
assert.eq([{_id: 3, k: {a: null, b: "z"}}], keys({a: null, b: "z"}));
// That of the element that was looked for, that of the hash, and those of the path and the value.
assert.eq([{_id: 1, k: {tags: "banana"}}], keys({tags: "banana"}));
assert.eq([{_id: 2, k: {$_path: "w.k", "w.k": 8}}], keys({"w.k": 8}));
const hashed = coll.aggregate([{$match: {h: 5}}, {$project: {type: {$type: {$getField: {field: "h", input: key}}}}}]).toArray();
assert.eq([{_id: 1, type: "long"}], hashed);
// No key of an index led to these.
assert.eq([{_id: 2}], keys({t: "cherry pie"}));
assert.eq([{_id: 2}], keys({$text: {$search: "cherry"}}));
assert.eq([{_id: 1, k: {h: NumberLong("1")}}].length, keys({h: 5}).length);

// A branch of an $or shows its own.
assert.eq([{_id: 1, k: {tags: "apple"}}, {_id: 2, k: {a: 30, b: "y"}}], keys({$or: [{tags: "apple"}, {a: 30}]}));

// A find, in each kind of projection. What is not asked for stays hidden.
const shown = projection => coll.find({a: 30}, projection).toArray();
assert.eq([{_id: 2, k: {a: 30, b: "y"}}], shown({k: key}).map(d => ({_id: d._id, k: d.k})));
assert.eq(["_id", "a", "b", "tags", "h", "w", "t", "k"], Object.keys(shown({k: key})[0]));
assert.eq([{k: {a: 30, b: "y"}, b: "y"}], shown({_id: 0, b: 1, k: key}).map(d => ({k: d.k, b: d.b})));
assert.eq(["a", "h", "w", "t", "k"], Object.keys(shown({_id: 0, b: 0, tags: 0, k: key})[0]));
assert.eq(["_id", "a", "b", "tags", "h", "w", "t", "k"],
          Object.keys(coll.aggregate([{$match: {a: 30}}, {$set: {k: key}}]).toArray()[0]));
// A router that merges by a sort projects what the shards found itself, and knows no keys.
if (db.hello().msg !== "isdbgrid") {
    assert.eq([{_id: 2, k: {a: 30, b: "y"}}, {_id: 1, k: {a: 10, b: "x"}}],
              coll.find({a: {$gt: 0}}, {_id: 1, k: key}).sort({a: -1}).toArray());
}
assert.eq([{_id: 2, k: {_id: 2}}], coll.find({_id: 2}, {_id: 1, k: key}).toArray());

assert.eq([{tags: "banana"}], coll.find({tags: "banana"}).hint({tags: 1}).returnKey().toArray());
assert.eq([{a: null, b: "z"}], coll.find({a: null}).hint({a: 1, b: -1}).returnKey().toArray());
