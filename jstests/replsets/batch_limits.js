/**
 * How much a member applies before readers see any of it is bounded as replBatchLimitOperations says, which a test sets to look at each
 * entry. It fails if the parameter is read by nobody, or taken where it makes no sense.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
for (const bad of [{replBatchLimitOperations: 0}, {replBatchLimitBytes: 1}, {replBatchLimitBytes: 1 << 30}]) {
    assert.commandFailedWithCode(secondary.adminCommand(Object.assign({setParameter: 1}, bad)), ErrorCodes.BadValue);
}
assert.commandWorked(secondary.adminCommand({setParameter: 1, replBatchLimitOperations: 1}));
const batches = () => secondary.adminCommand({serverStatus: 1}).metrics.repl.apply.batches.num;
const before = batches();
assert.commandWorked(insert(primary, Array.from({length: 200}, (_, i) => ({_id: i})), {w: 2}));
assert.eq(200, held(secondary).length);
assert.gte(batches() - before, 200);
rst.stopSet();
