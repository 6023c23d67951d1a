/**
 * A primary that has only an arbiter beside it commits alone. A member that becomes a voter there could be elected by the arbiter at
 * once, so it has to have what was committed before.
 * It fails if a member votes while it lacks an acknowledged majority write, or if such a write is lost with the primary.
 *
 * @tags: [requires_own_servers]
 */
import {held, holdBehind, insert, letGo, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {1: {votes: 0, priority: 0}, 2: {arbiterOnly: true}}});
const [primary, other] = rst.nodes;
assert.eq(primary.host, rst.getPrimary().host);
assert.commandWorked(insert(primary, [{_id: "shared"}], {w: 2, wtimeout: 20000}));
holdBehind(primary, [other]);
assert.commandWorked(insert(primary, [{_id: "committed"}], {w: "majority", wtimeout: 20000}));

const vote = (config) => Object.assign(config.members[1], {votes: 1, priority: 1});
assert.commandFailedWithCode(reconfig(rst, vote, {maxTimeMS: 3000}), ErrorCodes.CurrentConfigNotCommittedYet);
assert.eq(0, assert.commandWorked(primary.adminCommand({replSetGetConfig: 1})).config.members[1].votes);
// What was held up meanwhile goes on.
assert.commandWorked(insert(primary, [{_id: "committed afterwards"}], {w: "majority", wtimeout: 20000}));

letGo(other);
assert.commandWorked(reconfig(rst, vote));
rst.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
assert.soon(() => other.adminCommand({hello: 1}).isWritablePrimary, "it is not elected");
assert.eq(["committed", "committed afterwards", "on its way", "shared"], held(other).map((d) => d._id).sort());
rst.start(0, {}, true);
rst.awaitReplication();
rst.stopSet();
