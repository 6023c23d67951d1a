/**
 * arrayFilters choose which elements an update reaches, at every level of nesting; $[] reaches all.
 * Fails when a filtered update reaches other elements, or an unused, missing, doubled or ill-named filter is taken.
 */
const coll = db.update_array_filters;

function updated(before, update, arrayFilters) {
    coll.drop();
    assert.commandWorked(coll.insert(Object.assign({_id: 1}, before)));
    assert.commandWorked(coll.update({_id: 1}, update, {arrayFilters: arrayFilters || []}));
    const doc = coll.findOne();
    delete doc._id;
    return doc;
}

assert.eq({a: [1, 0, 0]}, updated({a: [1, 5, 9]}, {$set: {"a.$[big]": 0}}, [{big: {$gt: 1}}]));
assert.eq({a: [2, 6]}, updated({a: [1, 5]}, {$inc: {"a.$[]": 1}}));
assert.eq({a: []}, updated({a: []}, {$inc: {"a.$[]": 1}}));
assert.eq({a: [{k: 1, v: 5}, {k: 2, v: 0}]},
          updated({a: [{k: 1, v: 5}, {k: 2, v: 5}]}, {$set: {"a.$[e].v": 0}}, [{"e.k": 2}]));
assert.eq({a: [{g: [10, 3]}, {g: [9]}]},
          updated({a: [{g: [1, 3]}, {g: [9]}]}, {$set: {"a.$[i].g.$[j]": 10}}, [{"i.g": 3}, {j: {$lt: 2}}]));
assert.eq({a: [{g: [2, 4]}, {g: [10]}]}, updated({a: [{g: [1, 3]}, {g: [9]}]}, {$inc: {"a.$[].g.$[]": 1}}));
assert.eq({a: [{k: 1, s: [1]}, {k: 2}]}, updated({a: [{k: 1}, {k: 2}]}, {$push: {"a.$[e].s": 1}}, [{$or: [{"e.k": 1}, {"e.k": 7}]}]));
assert.eq({a: [1, null]}, updated({a: [1, 5]}, {$unset: {"a.$[x]": 1}}, [{x: 5}]));
assert.eq({a: [1, 7], b: [1, 7]}, updated({a: [1, 5], b: [1, 5]}, {$set: {"a.$[x]": 7, "b.$[x]": 7}}, [{x: {$gte: 5}}]));

coll.drop();
assert.commandWorked(coll.insert({_id: 1, a: [1, 2], s: "x"}));
function refused(codes, update, arrayFilters) {
    assert.commandFailedWithCode(coll.update({_id: 1}, update, {arrayFilters: arrayFilters}), codes, () => tojson([update, arrayFilters]));
}
refused(ErrorCodes.BadValue, {$set: {"a.$[x]": 0}}, []);
refused(ErrorCodes.FailedToParse, {$set: {"a.$[x]": 0}}, [{x: 1}, {y: 1}]);
refused(ErrorCodes.FailedToParse, {$set: {"a.$[x]": 0}}, [{x: 1}, {x: 2}]);
refused(ErrorCodes.FailedToParse, {$set: {"a.$[x]": 0}}, [{x: 1, y: 1}]);
refused(ErrorCodes.BadValue, {$set: {"a.$[Xy]": 0}}, [{Xy: 1}]);
refused(ErrorCodes.FailedToParse, {$set: {"a.$[x]": 0}}, [{}]);
refused(ErrorCodes.BadValue, {$set: {"s.$[]": 0}}, []);
refused(ErrorCodes.BadValue, {$set: {"none.$[]": 0}}, []);
refused(ErrorCodes.FailedToParse, {replacement: 1}, [{x: 1}]);
assert.eq({_id: 1, a: [1, 2], s: "x"}, coll.findOne());
