/**
 * A secondary told to step up leads in a later term, and the old primary follows it.
 * It fails if two lead, if the term stands still, or if a caught-up member refuses.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const term = () => assert.commandWorked(rst.getPrimary().adminCommand({replSetGetStatus: 1})).term;
const before = [rst.getPrimary(), term()];
const next = rst.getSecondary();
assert.commandWorked(insert(before[0], [{_id: 1}], {w: 3, wtimeout: 20000}));
rst.stepUp(next);
rst.awaitNodesAgreeOnPrimary(30000, rst.nodes, next);
assert.gt(term(), before[1]);
assert.eq([false, true], [before[0], next].map((n) => n.adminCommand({hello: 1}).isWritablePrimary));
assert.commandFailedWithCode(insert(before[0], [{_id: 2}]), 10107);
assert.commandWorked(insert(next, [{_id: 2}], {w: 3, wtimeout: 20000}));
const metrics = assert.commandWorked(next.adminCommand({replSetGetStatus: 1})).electionCandidateMetrics;
assert.eq(["stepUpRequest", 2], [metrics.lastElectionReason.replace("SkipDryRun", ""), metrics.numVotesNeeded], tojson(metrics));
const votes = rst.nodes.map((node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1})).electionParticipantMetrics)
    .filter((vote) => vote && Number(vote.electionTerm) === Number(term()));
assert.gte(votes.length, 1);
assert(votes.some((vote) => vote.votedForCandidate && Number(vote.electionCandidateMemberId) === rst.getNodeId(next)), tojson(votes));
rst.stopSet();
