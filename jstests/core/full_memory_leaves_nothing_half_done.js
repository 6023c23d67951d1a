/**
 * A node whose memory is filled by the data refuses a client's document before it does anything for it, and changes of the
 * catalog not at all. It fails if a refused write leaves a collection behind, or if a fork is refused when its target is gone.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod({});
const db = conn.getDB("full");
const copy = conn.getDB("copy");
const limit = (megabytes) => assert.commandWorked(conn.adminCommand({setParameter: 1, processMemoryLimitMB: megabytes}));
assert.commandWorked(db.c.insert([{_id: 1}, {_id: 2, s: "x".repeat(3000000)}]));
assert.commandWorked(db.createView("v", "c", [{$match: {_id: 1}}]));
assert.commandWorked(db.createCollection("series", {timeseries: {timeField: "t"}}));
assert.commandWorked(db.series.insert({t: new Date()}));
assert.commandWorked(copy.before.insert({_id: 1}));
const names = db.getCollectionNames().sort();

limit(1);
const refused = (command) => {
    const reply = db.runCommand(command);
    assert.eq(146, reply.ok ? (reply.writeErrors || [{}])[0].code : reply.code, tojson(reply));
};
refused({insert: "new", documents: [{_id: 1}]});
refused({update: "new", updates: [{q: {_id: 1}, u: {$set: {a: 1}}, upsert: true}]});
refused({findAndModify: "new", query: {_id: 1}, update: {$set: {a: 1}}, upsert: true});
refused({aggregate: "c", pipeline: [{$match: {_id: 1}}, {$merge: "new"}], cursor: {}});
refused({aggregate: "c", pipeline: [{$match: {_id: 1}}, {$set: {a: 1}}, {$merge: "c"}], cursor: {}});
refused({insert: "c", documents: [{_id: 3}]});
refused({update: "c", updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]});
refused({insert: "series", documents: [{t: new Date()}]});
assert.eq(names, db.getCollectionNames().sort());
assert.eq([{_id: 1}], db.v.find().toArray());
assert.eq(1, db.series.find().itcount());
// What shares the data adds nothing to it.
assert.commandWorked(conn.adminCommand({tesseraFork: "full", to: "copy", replace: true}));
assert.eq(names, copy.getCollectionNames().sort());
assert.eq([{_id: 1}], copy.v.find().toArray());
assert.commandWorked(db.c.remove({_id: 2}));
limit(0);
assert.commandWorked(db.c.insert({_id: 3}));
MongoRunner.stopMongod(conn);
