/**
 * $min and $max keep the lesser or the greater value in the order of all types.
 * Fails when they compare within one type only, touch an equal value, or do not set a missing field.
 */
const coll = db.update_min_and_max;

function updated(before, update) {
    coll.drop();
    assert.commandWorked(coll.insert(Object.assign({_id: 1}, before)));
    const result = assert.commandWorked(coll.update({_id: 1}, update));
    return [coll.findOne().v, result.nModified];
}

assert.eq([1, 1], updated({v: 2}, {$min: {v: 1}}));
assert.eq([2, 0], updated({v: 2}, {$min: {v: 3}}));
assert.eq([2, 0], updated({v: 2}, {$min: {v: 2}}));
assert.eq([3, 1], updated({v: 2}, {$max: {v: 3}}));
assert.eq([2, 0], updated({v: 2}, {$max: {v: 1}}));
assert.eq([7, 1], updated({}, {$min: {v: 7}}));
assert.eq([7, 1], updated({}, {$max: {v: 7}}));

// Numbers are less than strings, null is less than numbers.
assert.eq(["a", 1], updated({v: 1000}, {$max: {v: "a"}}));
assert.eq([1000, 0], updated({v: 1000}, {$min: {v: "a"}}));
assert.eq([null, 1], updated({v: 1}, {$min: {v: null}}));
assert.eq([1, 1], updated({v: null}, {$max: {v: 1}}));
assert.eq([new Date(5), 1], updated({v: new Date(9)}, {$min: {v: new Date(5)}}));

// Equal values of different types are no change.
assert.eq([2, 0], updated({v: 2}, {$max: {v: NumberLong(2)}}));

// Within documents and arrays.
assert.eq([{x: 4}, 1], updated({v: {x: 9}}, {$min: {"v.x": 4}}));
assert.eq([[1, 8], 1], updated({v: [1, 2]}, {$max: {"v.1": 8}}));
assert.eq([{y: 1}, 1], updated({}, {$min: {"v.y": 1}}));
