/**
 * A primary that nobody has caught up with steps down only by force, and goes on if it was asked in vain.
 * It fails if a set is left without a primary for nothing, or if the writes of the meantime fail for good.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
holdBehind(primary, [secondary]);
assert.commandWorked(insert(primary, [{_id: 2}]));
const step_down = (more) => primary.adminCommand(Object.assign({replSetStepDown: 20, secondaryCatchUpPeriodSecs: 1}, more));
assert.commandFailedWithCode(step_down({}), 262);
assert.commandWorked(insert(primary, [{_id: 3}]));
assert.commandFailedWithCode(primary.adminCommand({replSetStepDown: -1}), 2);
assert.commandFailedWithCode(primary.adminCommand({replSetStepDown: 1, secondaryCatchUpPeriodSecs: 5}), 2);
assert.commandFailedWithCode(secondary.adminCommand({replSetStepDown: 20}), 10107);
assert.commandWorked(step_down({force: true}));
assert(!primary.adminCommand({hello: 1}).isWritablePrimary);
letGo(secondary);
rst.awaitNodesAgreeOnPrimary(30000, rst.nodes, secondary);
assert.eq(3, secondary.getDB("test").c.find().itcount());
rst.stopSet();
