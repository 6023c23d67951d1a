/**
 * A client that waits with hello is told at once when its member's state changes. It fails if it is told late, or if the
 * topology version does not rise.
 *
 * @tags: [requires_own_servers]
 */
import {startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const primary = rst.getPrimary();
const before = assert.commandWorked(primary.adminCommand({hello: 1}));
const join = startParallelShell(
    "sleep(300); assert.commandWorked(db.adminCommand({replSetStepDown: 30}));", primary.port);
let seen = before;
const began = Date.now();
while (seen.isWritablePrimary) {
    seen = assert.commandWorked(
        primary.adminCommand({hello: 1, topologyVersion: seen.topologyVersion, maxAwaitTimeMS: NumberLong(10000)}));
}
assert.lt(Date.now() - began, 8000);
assert.gt(seen.topologyVersion.counter, before.topologyVersion.counter);
join();
const quiet = assert.commandWorked(primary.adminCommand({hello: 1})).topologyVersion;
const idle = Date.now();
assert.commandFailedWithCode(primary.adminCommand({hello: 1, topologyVersion: quiet}), 31368);
assert.lt(Date.now() - idle, 5000);
rst.stopSet();
