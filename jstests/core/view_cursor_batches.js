/**
 * A cursor on a view that is no more than a filter gives all its batches, like one on a view that computes.
 * Fails when getMore looks for the collection under the view's name.
 */
const names = ["view_cursor_source", "view_cursor_filter", "view_cursor_nothing", "view_cursor_computed"];
names.forEach(name => db[name].drop());
assert.commandWorked(db[names[0]].insert([...Array(250).keys()].map(i => ({_id: i}))));
assert.commandWorked(db.createView(names[1], names[0], [{$match: {_id: {$gte: 10}}}]));
assert.commandWorked(db.createView(names[2], names[1], []));
assert.commandWorked(db.createView(names[3], names[0], [{$addFields: {z: 1}}]));
assert.eq(240, db[names[1]].find().toArray().length);
assert.eq(240, db[names[2]].find().batchSize(7).toArray().length);
assert.eq(240, db[names[2]].aggregate([], {cursor: {batchSize: 100}}).toArray().length);
assert.eq(250, db[names[3]].find().toArray().length);
