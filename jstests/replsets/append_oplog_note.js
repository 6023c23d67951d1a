/**
 * A note is an entry of the oplog that changes nothing; tools use it to move the time on.
 * It fails if the note is not written, its text is lost, or it is taken by a node that may not write.
 *
 * @tags: [requires_replication]
 */
const oplog = db.getSiblingDB("local").getCollection("oplog.rs");
const newest = () => oplog.find().sort({$natural: -1}).limit(1).next();

const before = newest();
const reply = assert.commandWorked(db.adminCommand({appendOplogNote: 1, data: {text: "a note", n: NumberLong(5)}}));
const note = oplog.findOne({op: "n", "o.text": "a note", ts: {$gt: before.ts}});
assert(note, tojson(newest()));
assert.eq("", note.ns);
assert.eq(NumberLong(5), note.o.n);
assert(note.wall instanceof Date);
assert.gte(bsonWoCompare({t: reply.operationTime}, {t: note.ts}), 0);

// Only if the time has not come yet.
const past = Timestamp(before.ts.getTime(), before.ts.getInc());
const count = () => oplog.find({op: "n", "o.text": "never"}).itcount();
const old = db.adminCommand({appendOplogNote: 1, data: {text: "never"}, maxClusterTime: past});
assert.commandFailedWithCode(old, 209);
assert.eq("StaleClusterTime", old.codeName);
assert.eq(0, count());

// Malformed.
assert.commandFailedWithCode(db.adminCommand({appendOplogNote: 1}), [4, 40414]);
assert.commandFailedWithCode(db.adminCommand({appendOplogNote: 1, data: "text"}), [14]);
assert.commandFailedWithCode(db.runCommand({appendOplogNote: 1, data: {a: 1}}), 13);

// It changes no data, but the time.
const changed = assert.commandWorked(db.adminCommand({replSetGetStatus: 1})).optimes.appliedOpTime.ts;
assert.gte(bsonWoCompare({t: changed}, {t: note.ts}), 0);
