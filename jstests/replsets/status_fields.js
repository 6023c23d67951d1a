/**
 * Operators and tools read a set's health from replSetGetStatus, field by field.
 * It fails if a field is renamed or missing, or optimes do not move on with writes.
 *
 * @tags: [requires_replication]
 */
const status = () => assert.commandWorked(db.adminCommand({replSetGetStatus: 1}));
let s = status();
const hello = assert.commandWorked(db.adminCommand({hello: 1}));
assert.eq(hello.setName, s.set);
assert(s.date instanceof Date);
assert.eq(1, s.myState);
assert.eq(NumberLong(1), NumberLong(Number(s.term) >= 1 ? 1 : 0));
assert.eq("", s.syncSourceHost);
assert.eq(-1, s.syncSourceId);
assert.eq(NumberLong(2000), NumberLong(Number(s.heartbeatIntervalMillis)));
assert.eq(1, s.majorityVoteCount);
assert.eq(1, s.writeMajorityCount);
assert.eq(1, s.votingMembersCount);
assert.eq(1, s.writableVotingMembersCount);
for (const name of ["lastCommittedOpTime", "readConcernMajorityOpTime", "appliedOpTime", "durableOpTime"]) {
    assert(s.optimes[name].ts instanceof Timestamp, name);
    assert(s.optimes[name].t instanceof NumberLong, name);
}
for (const name of ["lastCommittedWallTime", "lastAppliedWallTime", "lastDurableWallTime"]) {
    assert(s.optimes[name] instanceof Date, name);
}
assert.soon(() => status().lastStableRecoveryTimestamp instanceof Timestamp, () => tojson(status()));
const election = s.electionCandidateMetrics;
assert(["electionTimeout", "stepUpRequest", "priorityTakeover"].includes(election.lastElectionReason), tojson(election));
assert(election.lastElectionDate instanceof Date);
assert.eq(s.term, election.electionTerm);

assert.eq(1, s.members.length);
const me = s.members[0];
assert.eq(0, me._id);
assert.eq(hello.me, me.name);
assert.eq(1, me.health);
assert.eq(1, me.state);
assert.eq("PRIMARY", me.stateStr);
assert.gte(me.uptime, 0);
assert(me.optime.ts instanceof Timestamp);
assert(me.optimeDate instanceof Date);
assert(me.lastAppliedWallTime instanceof Date);
assert(me.lastDurableWallTime instanceof Date);
assert(me.electionTime instanceof Timestamp);
assert(me.electionDate instanceof Date);
assert.eq("", me.infoMessage);
assert.eq(true, me.self);
assert.eq("", me.lastHeartbeatMessage);
assert.eq(1, me.configVersion);
assert.eq(Number(s.term), Number(me.configTerm));

// Optimes follow writes.
const before = s.optimes.appliedOpTime.ts;
const reply = assert.commandWorked(db.runCommand(
    {insert: "status_fields", documents: [{x: 1}], writeConcern: {w: "majority"}}));
s = status();
assert.gt(bsonWoCompare({t: s.optimes.appliedOpTime.ts}, {t: before}), 0);
assert.gte(bsonWoCompare({t: s.optimes.lastCommittedOpTime.ts}, {t: reply.operationTime}), 0);
assert.gte(bsonWoCompare({t: s.optimes.durableOpTime.ts}, {t: reply.operationTime}), 0);

// The legacy helper, and the wrong database.
assert.eq(1, rs.status().myState);
assert.commandFailedWithCode(db.runCommand({replSetGetStatus: 1}), 13);

// What a restart would begin from, for fixtures that wait until there is something.
if (assert.commandWorked(db.adminCommand({getParameter: 1, enableTestCommands: 1})).enableTestCommands) {
    const kept = assert.commandWorked(db.adminCommand({replSetTest: 1, getLastStableRecoveryTimestamp: 1})).lastStableRecoveryTimestamp;
    assert.gt(bsonWoCompare({t: kept}, {t: Timestamp(0, 0)}), 0);
    assert.lte(bsonWoCompare({t: kept}, {t: status().optimes.appliedOpTime.ts}), 0);
    assert.commandWorked(db.adminCommand({replSetTest: 1, restartHeartbeats: 1}));
}
