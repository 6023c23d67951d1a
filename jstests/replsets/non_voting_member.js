/**
 * A member without a vote copies, and counts for no majority. It fails if a majority waits for it, if it stands for election,
 * or if w: 3 is met without it.
 *
 * @tags: [requires_own_servers]
 */
import {held, hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {2: {votes: 0, priority: 0}}});
const [primary, silent] = [rst.getPrimary(), rst.nodes[2]];
const status = assert.commandWorked(primary.adminCommand({replSetGetStatus: 1}));
assert.eq([2, 2, 2], [status.majorityVoteCount, status.writeMajorityCount, status.votingMembersCount], tojson(status));
hold(silent);
assert.commandWorked(insert(primary, [{_id: 1}], {w: "majority", wtimeout: 20000}));
assert.eq(64, insert(primary, [{_id: 2}], {w: 3, wtimeout: 300}).writeConcernError.code);
assert.commandFailed(silent.adminCommand({replSetStepUp: 1}));
letGo(silent);
assert.commandWorked(insert(primary, [{_id: 3}], {w: 3, wtimeout: 20000}));
assert.eq([1, 2, 3], held(silent).map((d) => d._id));
rst.stopSet();
