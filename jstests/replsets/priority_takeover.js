/**
 * A member of higher priority takes the lead over. It fails if a set stays with a primary of lower priority.
 *
 * @tags: [requires_own_servers]
 */
import {insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const other = rst.getSecondary();
const id = rst.getNodeId(other);
assert.commandWorked(insert(rst.getPrimary(), [{_id: 1}], {w: 2, wtimeout: 20000}));
assert.commandWorked(reconfig(rst, (config) => config.members[id].priority = 5));
assert.soon(() => other.adminCommand({hello: 1}).isWritablePrimary, "it does not take over");
const metrics = assert.commandWorked(other.adminCommand({replSetGetStatus: 1})).electionCandidateMetrics;
assert.eq(["priorityTakeover", 5], [metrics.lastElectionReason, metrics.priorityAtElection], tojson(metrics));
rst.stopSet();
