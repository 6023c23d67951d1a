/**
 * Drivers find the primary by hello; each of its fields decides what they send and to whom.
 * It fails if a field is missing or changes its type, or the election's id does not grow with the term.
 *
 * @tags: [requires_replication]
 */
for (const command of ["hello", "isMaster"]) {
    const reply = assert.commandWorked(db.adminCommand({[command]: 1}));
    assert.eq(true, command === "hello" ? reply.isWritablePrimary : reply.ismaster);
    assert.eq(false, reply.secondary);
    assert.eq("string", typeof reply.setName);
    assert.eq(1, reply.setVersion);
    assert.eq([reply.me], reply.hosts);
    assert.eq(reply.me, reply.primary);
    assert(/^[^:]+:\d+$/.test(reply.me), reply.me);
    assert(reply.electionId instanceof ObjectId);
    assert.eq("7fffffff", reply.electionId.str.substring(0, 8));
    assert.eq(Number(db.adminCommand({replSetGetStatus: 1}).term), parseInt(reply.electionId.str.substring(8), 16));
    for (const name of ["opTime", "majorityOpTime"]) {
        assert(reply.lastWrite[name].ts instanceof Timestamp, tojson(reply.lastWrite));
        assert(reply.lastWrite[name].t instanceof NumberLong, tojson(reply.lastWrite));
    }
    assert(reply.lastWrite.lastWriteDate instanceof Date);
    assert(reply.lastWrite.majorityWriteDate instanceof Date);
    // Drivers compare them between members: they say of one entry the same everywhere.
    assert.eq(reply.lastWrite.opTime.ts.t * 1000, reply.lastWrite.lastWriteDate.getTime());
    assert.eq(reply.lastWrite.majorityOpTime.ts.t * 1000, reply.lastWrite.majorityWriteDate.getTime());
    assert.eq(16777216, reply.maxBsonObjectSize);
    assert.eq(48000000, reply.maxMessageSizeBytes);
    assert.eq(100000, reply.maxWriteBatchSize);
    assert(reply.localTime instanceof Date);
    assert.eq(30, reply.logicalSessionTimeoutMinutes);
    assert.gt(reply.connectionId, 0);
    assert.eq(0, reply.minWireVersion);
    assert.eq(25, reply.maxWireVersion);
    assert.eq(false, reply.readOnly);
    assert(reply.topologyVersion.processId instanceof ObjectId);
    assert(reply.topologyVersion.counter instanceof NumberLong);
    assert(!("passives" in reply) && !("arbiters" in reply) && !("msg" in reply), tojson(reply));
    assert(reply.$clusterTime.clusterTime instanceof Timestamp);
    assert(reply.operationTime instanceof Timestamp);
}

// Waiting for a change of topology: nothing changes, so it takes its time and answers the same version.
const version = db.adminCommand({hello: 1}).topologyVersion;
const start = Date.now();
const waited = assert.commandWorked(db.adminCommand({hello: 1, topologyVersion: version, maxAwaitTimeMS: 500}));
assert.gte(Date.now() - start, 450);
assert.eq(version, waited.topologyVersion);
assert.commandFailedWithCode(db.adminCommand({hello: 1, topologyVersion: version}), 31368);
assert.commandFailedWithCode(db.adminCommand({hello: 1, maxAwaitTimeMS: 500}), 31368);
assert.commandFailedWithCode(db.adminCommand({hello: 1, topologyVersion: version, maxAwaitTimeMS: -1}), [2, 31373, 51024]);

// A version of another process is answered at once.
const other = {processId: ObjectId(), counter: NumberLong(0)};
const soon = Date.now();
assert.commandWorked(db.adminCommand({hello: 1, topologyVersion: other, maxAwaitTimeMS: 10000}));
assert.lt(Date.now() - soon, 5000);

// The last write's time follows writes.
const before = db.adminCommand({hello: 1}).lastWrite.opTime.ts;
assert.commandWorked(db.hello_fields.insert({_id: 1}));
const after = db.adminCommand({hello: 1}).lastWrite.opTime.ts;
assert.gt(bsonWoCompare({t: after}, {t: before}), 0);
