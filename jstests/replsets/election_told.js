/**
 * A primary tells how it was elected: why, after whom, what it had seen, and since when writes reach a majority.
 * It fails if it names another predecessor, or says that a majority writes before one has its first entry.
 *
 * @tags: [requires_own_servers]
 */
import {hold, insert, letGo, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
const [next, third] = rst.getSecondaries();
assert.commandWorked(insert(old, [{_id: 1}], {w: 3}));
const told = (node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1})).electionCandidateMetrics;
assert.eq(undefined, told(next));
assert.soon(() => told(old).wMajorityWriteAvailabilityDate instanceof Date);

rst.awaitLastOpCommitted();
[old, third].forEach(hold);
rst.stepUpNoAwaitReplication(next);
let metrics = told(next);
assert.eq("stepUpRequest", metrics.lastElectionReason);
assert.eq(row(next, old)._id, metrics.priorPrimaryMemberId);
assert.eq(1, rs.compareOpTimes(assert.commandWorked(next.adminCommand({replSetGetStatus: 1})).optimes.appliedOpTime, metrics.lastSeenOpTimeAtElection));
assert.gte(rs.compareOpTimes(metrics.lastSeenOpTimeAtElection, metrics.lastCommittedOpTimeAtElection), 0);
assert.lte(metrics.lastElectionDate, metrics.newTermStartDate);
// Nobody was ahead of it.
assert.eq([undefined, 0], [metrics.targetCatchupOpTime, Number(metrics.numCatchUpOps)], tojson(metrics));
assert.eq(undefined, metrics.wMajorityWriteAvailabilityDate);
[old, third].forEach(letGo);
assert.soon(() => told(next).wMajorityWriteAvailabilityDate instanceof Date);
metrics = told(next);
assert.lte(metrics.newTermStartDate, metrics.wMajorityWriteAvailabilityDate);
assert.soon(() => told(old) === undefined);

// A source that cannot be reached is refused.
rst.stop(third);
assert.soon(() => row(old, third).health === 0);
assert.commandFailedWithCode(old.adminCommand({replSetSyncFrom: third.host}), ErrorCodes.HostUnreachable);
assert.commandWorked(old.adminCommand({replSetSyncFrom: next.host}));
rst.stopSet();
