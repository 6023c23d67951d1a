/**
 * A primary that hears of no majority steps down; the member that is left serves reads and takes no writes.
 * It fails if a member alone stays primary, or if it does not lead again when the others are back.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 1000}});
const primary = rst.getPrimary();
assert.commandWorked(insert(primary, [{_id: 1}], {w: 3, wtimeout: 20000}));
const others = rst.getSecondaries().map((n) => rst.getNodeId(n));
others.forEach((id) => rst.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}));
assert.soon(() => primary.adminCommand({hello: 1}).secondary, "it stays primary alone");
assert.commandFailedWithCode(insert(primary, [{_id: 2}]), 10107);
assert.eq([{_id: 1}], held(primary));
rst.start(others[0], {}, true);
assert.soon(() => insert(rst.getPrimary(), [{_id: 3}], {w: 2, wtimeout: 20000}).n === 1);
rst.stopSet();
