/**
 * Documents whose time is over go by themselves.
 * Fails when an expired document stays, or one that is young, has no date or is outside a partial index goes, or serverStatus does not count it.
 *
 * @tags: [
 *   # The monitor's pace is set on the node that holds the documents.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.ttl_deletes_documents;
coll.drop();
const now = Date.now();
const old = new Date(now - 10 * 60 * 1000);
assert.commandWorked(coll.insert([
    {_id: "old", at: old},
    {_id: "young", at: new Date(now)},
    {_id: "future", at: new Date(now + 3600 * 1000)},
    {_id: "text", at: "1970-01-01"},
    {_id: "none"},
    {_id: "number", at: 5},
    // The earliest date of an array decides.
    {_id: "array", at: [new Date(now), old]},
    {_id: "youngArray", at: [new Date(now), "x"]},
    {_id: "kept", until: old},
    {_id: "done", until: old, done: true},
]));
assert.commandWorked(coll.createIndex({at: 1}, {expireAfterSeconds: 300}));
assert.commandWorked(coll.createIndex({until: 1}, {expireAfterSeconds: 0, partialFilterExpression: {done: true}}));

const counted = () => db.serverStatus().metrics.ttl;
const before = counted();
const was = assert.commandWorked(db.adminCommand({setParameter: 1, ttlMonitorSleepSecs: 1})).was;
try {
    assert.soon(() => coll.find({_id: {$in: ["old", "array", "done"]}}).itcount() == 0, () => tojson(coll.find().toArray()), 90 * 1000);
    assert.sameMembers(["young", "future", "text", "none", "number", "youngArray", "kept"], coll.find().toArray().map(doc => doc._id));

    // What becomes old enough by a change of the lifetime goes too.
    assert.commandWorked(db.runCommand({collMod: coll.getName(), index: {keyPattern: {at: 1}, expireAfterSeconds: 0}}));
    assert.soon(() => coll.find({_id: "young"}).itcount() == 0, "the shortened lifetime has no effect", 90 * 1000);
    assert.eq(1, coll.find({_id: "future"}).itcount());
    assert.soon(() => counted().deletedDocuments - before.deletedDocuments >= 4 && counted().passes > before.passes,
                () => tojson({before, after: counted()}));
} finally {
    assert.commandWorked(db.adminCommand({setParameter: 1, ttlMonitorSleepSecs: was}));
}
