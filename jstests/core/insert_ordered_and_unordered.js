/**
 * Clients choose between stopping at the first refused document and trying them all, so both must leave exactly the promised documents.
 * Fails when an ordered insert goes on after a write error, or an unordered one stops at it.
 */
const coll = db.insert_ordered_and_unordered;

function insertWithDuplicates(ordered) {
    coll.drop();
    assert.commandWorked(coll.insert({_id: 1, first: true}));
    return db.runCommand({
        insert: coll.getName(),
        documents: [{_id: 0}, {_id: 1}, {_id: 2}, {_id: 1}, {_id: 3}],
        ordered: ordered
    });
}

function ids() {
    return coll.find().sort({_id: 1}).toArray().map(doc => doc._id);
}

const ordered = insertWithDuplicates(true);
assert.eq(1, ordered.ok);
assert.eq(1, ordered.n);
assert.eq(1, ordered.writeErrors.length, () => tojson(ordered));
assert.eq(1, ordered.writeErrors[0].index);
assert.eq(ErrorCodes.DuplicateKey, ordered.writeErrors[0].code);
assert.eq([0, 1], ids());

const unordered = insertWithDuplicates(false);
assert.eq(1, unordered.ok);
assert.eq(3, unordered.n);
assert.eq([1, 3], unordered.writeErrors.map(error => error.index));
assert.eq([0, 1, 2, 3], ids());

// What a duplicate key error says about the key and its value.
for (const error of unordered.writeErrors) {
    assert.eq(11000, error.code);
    assert.eq({_id: 1}, error.keyPattern);
    assert.eq({_id: 1}, error.keyValue);
    assert(/^E11000 duplicate key error collection: .*insert_ordered_and_unordered index: _id_ dup key: \{ _id: 1\.0 \}/.test(error.errmsg),
           error.errmsg);
}

// The document that was there is untouched.
assert.eq({_id: 1, first: true}, coll.findOne({_id: 1}));
