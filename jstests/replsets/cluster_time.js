/**
 * operationTime and $clusterTime let a session read its own writes; both move on with every change and never go back.
 * It fails if a reply lacks one of them, a write does not advance them, or a time far in the future is believed.
 *
 * @tags: [requires_replication]
 */
const coll = db.cluster_time;
coll.drop();
const compare = (a, b) => bsonWoCompare({t: a}, {t: b});

let last = Timestamp(0, 0);
for (let i = 0; i < 20; i++) {
    const reply = assert.commandWorked(db.runCommand({insert: coll.getName(), documents: [{_id: i}]}));
    assert.gt(compare(reply.operationTime, last), 0);
    assert.gte(compare(reply.$clusterTime.clusterTime, reply.operationTime), 0);
    assert.eq(20, reply.$clusterTime.signature.hash.length());
    assert.eq(NumberLong(0), reply.$clusterTime.signature.keyId);
    const entry = db.getSiblingDB("local").getCollection("oplog.rs").findOne({ns: coll.getFullName(), "o._id": i});
    assert.eq(reply.operationTime, entry.ts);
    last = reply.operationTime;
}

// Reads do not advance it, and never answer an older one.
for (const command of [{find: coll.getName()}, {count: coll.getName()}, {ping: 1}, {listCollections: 1}]) {
    const reply = assert.commandWorked(db.runCommand(command));
    assert.gte(compare(reply.operationTime, last), 0, tojson(command));
}

// Errors carry them as well.
const failed = db.runCommand({insert: coll.getName(), documents: [{_id: 1}]});
assert.eq(11000, failed.writeErrors[0].code);
assert(failed.operationTime instanceof Timestamp, tojson(failed));
const unknown = db.runCommand({noSuchCommand: 1});
assert.commandFailedWithCode(unknown, 59);
assert(unknown.$clusterTime.clusterTime instanceof Timestamp, tojson(unknown));

// A write that changes nothing answers the time of what is there.
const nothing = assert.commandWorked(db.runCommand({delete: coll.getName(), deletes: [{q: {_id: "absent"}, limit: 0}]}));
assert.gte(compare(nothing.operationTime, last), 0);

// A client's time a little ahead is taken over, one far ahead is refused.
const now = assert.commandWorked(db.runCommand({ping: 1})).$clusterTime;
const ahead = (seconds) => ({clusterTime: Timestamp(now.clusterTime.getTime() + seconds, 1), signature: now.signature});
assert.commandWorked(db.runCommand({ping: 1, $clusterTime: ahead(2)}));
const later = assert.commandWorked(db.runCommand({insert: coll.getName(), documents: [{_id: "later"}]}));
assert.gte(compare(later.operationTime, ahead(2).clusterTime), 0);
const far = db.runCommand({ping: 1, $clusterTime: ahead(2 * 366 * 24 * 3600)});
assert.commandFailedWithCode(far, 205);
assert.eq("ClusterTimeFailsRateLimiter", far.codeName);
assert.commandFailed(db.runCommand({ping: 1, $clusterTime: {clusterTime: 5, signature: now.signature}}));

// A session that reads after its own write.
const session = db.getMongo().startSession({causalConsistency: true});
const inSession = session.getDatabase(db.getName())[coll.getName()];
for (let i = 0; i < 10; i++) {
    assert.commandWorked(inSession.insert({_id: `s${i}`}));
    assert.eq(1, inSession.find({_id: `s${i}`}).itcount());
}
assert(session.getOperationTime() instanceof Timestamp);
assert(session.getClusterTime().clusterTime instanceof Timestamp);
session.endSession();
coll.drop();
