/**
 * A secondary follows the member it is told to, also another secondary, and refuses those it cannot follow.
 * It fails if writes do not come through a chain, if the source is not shown, or if an impossible one is taken.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const primary = rst.getPrimary();
const [one, two] = rst.getSecondaries();
assert.commandWorked(insert(primary, [{_id: 1}], {w: 3, wtimeout: 20000}));
const reply = assert.commandWorked(two.adminCommand({replSetSyncFrom: one.host}));
assert.eq(one.host, reply.syncFromRequested);
assert.soon(() => {
    insert(primary, [{}]);
    return assert.commandWorked(two.adminCommand({replSetGetStatus: 1})).syncSourceHost === one.host;
}, "it does not follow the other secondary");
assert.commandWorked(insert(primary, [{_id: 2}], {w: 3, wtimeout: 20000}));
assert(held(two).some((d) => d._id === 2));
assert.eq(one.host, row(two, two).syncSourceHost);
assert.commandFailedWithCode(two.adminCommand({replSetSyncFrom: two.host}), 72);
assert.commandFailedWithCode(two.adminCommand({replSetSyncFrom: "nowhere.invalid:1"}), 74);
assert.commandFailedWithCode(primary.adminCommand({replSetSyncFrom: one.host}), 95);
rst.stopSet();
