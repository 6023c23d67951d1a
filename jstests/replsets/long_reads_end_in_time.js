/**
 * What goes through a whole collection or the whole log ends when its time is up.
 */
(function() {
"use strict";

const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const db = primary.getDB("long_reads");
const N = 60000;
for (let i = 0; i < N; i += 10000) {
    assert.commandWorked(db.c.insert(Array.from({length: 10000}, (_, j) => ({_id: i + j, k: j, s: "x".repeat(100)}))));
}

const whole = {dataSize: "long_reads.c", keyPattern: {_id: 1}, min: {_id: 0}, max: {_id: N}};
assert.eq(N, assert.commandWorked(db.runCommand(whole)).numObjects);
const late = [
    [db, whole],
    [db, {validate: "c", full: true}],
    [db, {dbHash: 1}],
    [db, {createIndexes: "c", indexes: [{key: {k: 1, s: 1}, name: "ks"}]}],
    [primary.getDB("config"), {find: "image_collection"}],
    [primary.getDB("config"), {aggregate: "system.preimages", pipeline: [], cursor: {}}],
    [primary.getDB("local"), {find: "oplog.rs", sort: {ts: 1, wall: 1}}],
];
for (const [where, command] of late) {
    const reply = where.runCommand(Object.assign({}, command, {maxTimeMS: 1}));
    assert.commandFailedWithCode(reply, ErrorCodes.MaxTimeMSExpired, tojson(command));
}
assert.eq(1, db.c.getIndexes().length);
rst.stopSet();
}());
