/**
 * Clients and drivers rely on the codes of what is refused: arguments that a command, an index or a version of the API does not take.
 * Fails when one of them is taken, or refused by another code.
 */
const t = db.refused_arguments;
t.drop();
assert.commandWorked(t.insert([{_id: 1, a: [{x: 1}], n: 1}]));
const name = t.getName();
const fails = (code, command) => assert.commandFailedWithCode(db.runCommand(command), code, tojsononeline(command));

// Constants are for pipelines.
fails(51198, {update: name, updates: [{q: {_id: 1}, u: {$set: {n: 2}}, c: {v: 2}}]});
// Not even where nothing is found, and a router makes the document.
fails(51198, {update: name, updates: [{q: {other: 1}, u: {$set: {n: 2}}, c: {v: 2}, upsert: true}]});
assert.eq(1, t.findOne().n);
assert.commandWorked(db.runCommand({update: name, updates: [{q: {_id: 1}, u: [{$set: {n: "$$v"}}], c: {v: 2}}]}));
assert.eq(2, t.findOne().n);

fails(2, {insert: name, documents: [{_id: 2, s: "x".repeat(16 * 1024 * 1024 + 1)}]});
fails(14, {find: name, filter: null});
assert.commandWorked(db.runCommand({find: name, projection: null}));

// Nothing sorts by distance here.
fails(5626500, {update: name, updates: [{q: {_id: 1}, u: {$set: {"a.$[e].y": 1}}, arrayFilters: [{"e.x": {$near: [0, 0]}}]}]});
fails(5626500, {find: name, projection: {a: {$elemMatch: {x: {$near: [0, 0]}}}}});
assert.eq([{_id: 1, a: [{x: 1}]}], t.find({}, {a: {$elemMatch: {x: {$gt: 0}}}}).toArray());

// Null is no list, and no member of one.
fails(40414, {killCursors: name, cursors: null});
assert.eq([NumberLong(7)], assert.commandWorked(db.runCommand({killCursors: name, cursors: [null, NumberLong(7)]})).cursorsNotFound);
fails(72, {find: name, readConcern: {level: "snapshot", atClusterTime: Timestamp(0, 0)}});

// Points of a plane have no collation.
const plane = {key: {p: "2d"}, name: "p_2d"};
fails(67, {createIndexes: name, indexes: [Object.assign({collation: {locale: "en"}}, plane)]});
assert.commandWorked(db.runCommand({createIndexes: name, indexes: [Object.assign({collation: {locale: "simple"}}, plane)]}));
const collated = db.refused_arguments_collated;
collated.drop();
assert.commandWorked(db.createCollection(collated.getName(), {collation: {locale: "en"}}));
fails(67, {createIndexes: collated.getName(), indexes: [plane]});

// Nor has text, and the message shows the collation as the shell does.
const words = {createIndexes: collated.getName(), indexes: [{key: {w: "text"}, name: "w_text"}]};
fails(67, words);
const said = db.runCommand(words).errmsg;
assert(said.startsWith('Index type \'text\' does not support collation: { locale: "en", caseLevel: false, '), said);
words.indexes[0].collation = {locale: "simple"};
assert.commandWorked(db.runCommand(words));

// What version 1 of the API has not.
const strict = {apiVersion: "1", apiStrict: true};
fails(323, Object.assign({startSession: 1}, strict));
fails(323, Object.assign({killSessions: []}, strict));
fails(323, Object.assign({aggregate: name, pipeline: [], cursor: {}, explain: true}, strict));
fails(323, Object.assign({aggregate: name, pipeline: [{$collStats: {storageStats: {}}}], cursor: {}}, strict));
assert.commandWorked(db.runCommand(Object.assign({aggregate: name, pipeline: [{$collStats: {count: {}}}], cursor: {}}, strict)));
