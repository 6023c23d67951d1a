/**
 * $push appends to arrays, with modifiers that place, sort and cut.
 * Fails when $each, $position, $sort or $slice acts in another order or way, or a push to a scalar is taken.
 */
const coll = db.update_push;

function pushed(before, push) {
    coll.drop();
    assert.commandWorked(coll.insert(before === undefined ? {_id: 1} : {_id: 1, a: before}));
    assert.commandWorked(coll.update({_id: 1}, {$push: {a: push}}));
    return coll.findOne().a;
}

assert.eq([1], pushed(undefined, 1));
assert.eq([1, 2], pushed([1], 2));
assert.eq([1, [2, 3]], pushed([1], [2, 3]));
assert.eq([1, 2, 3], pushed([1], {$each: [2, 3]}));
assert.eq([1], pushed([1], {$each: []}));
assert.eq([9, 1, 2], pushed([1, 2], {$each: [9], $position: 0}));
assert.eq([1, 9, 2], pushed([1, 2], {$each: [9], $position: -1}));
assert.eq([1, 2, 9], pushed([1, 2], {$each: [9], $position: 50}));
assert.eq([9, 1, 2], pushed([1, 2], {$each: [9], $position: -50}));
assert.eq([1, 2], pushed([1], {$each: [2, 3], $slice: 2}));
assert.eq([2, 3], pushed([1], {$each: [2, 3], $slice: -2}));
assert.eq([], pushed([1], {$each: [2], $slice: 0}));
assert.eq([1, 2, 3], pushed([3, 1], {$each: [2], $sort: 1}));
assert.eq([3, 2], pushed([3, 1], {$each: [2], $sort: -1, $slice: 2}));
assert.eq([{k: 1, v: 9}, {k: 2}, {k: 3}], pushed([{k: 3}, {k: 2}], {$each: [{k: 1, v: 9}], $sort: {k: 1}}));
assert.eq([{k: {d: 2}}, {k: {d: 1}}], pushed([{k: {d: 1}}], {$each: [{k: {d: 2}}], $sort: {"k.d": -1}}));
// The order is place, then sort, then cut, however the modifiers are written.
assert.eq([1, 2], pushed([5, 1], {$slice: 2, $sort: 1, $position: 0, $each: [2]}));

coll.drop();
assert.commandWorked(coll.insert({_id: 1, s: "x", a: [1], o: {}}));
function refused(codes, push) {
    assert.commandFailedWithCode(coll.update({_id: 1}, {$push: push}), codes, () => tojson(push));
}
refused(ErrorCodes.BadValue, {s: 1});
refused(ErrorCodes.BadValue, {o: 1});
refused(ErrorCodes.BadValue, {a: {$each: 1}});
refused(ErrorCodes.BadValue, {a: {$each: [1], $position: "x"}});
refused(ErrorCodes.BadValue, {a: {$each: [1], $slice: "x"}});
refused(ErrorCodes.BadValue, {a: {$each: [1], $sort: 2}});
refused(ErrorCodes.BadValue, {a: {$each: [1], $sort: {"a..b": 1}}});
refused(ErrorCodes.BadValue, {a: {$each: [1], $unheardOf: 1}});
assert.eq({_id: 1, s: "x", a: [1], o: {}}, coll.findOne());
