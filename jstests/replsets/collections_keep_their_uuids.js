/**
 * A collection has one UUID on all members, and another when it was made anew. It fails if members differ, or if entries for
 * the old one touch the new.
 *
 * @tags: [requires_own_servers]
 */
import {held, hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
const db = primary.getDB("test");
const uuid = (node) => {
    node.setSecondaryOk();
    const infos = node.getDB("test").getCollectionInfos({name: "c"});
    return infos.length ? infos[0].info.uuid : undefined;
};
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2, wtimeout: 20000}));
const before = uuid(primary);
assert.eq(before, uuid(secondary));
hold(secondary);
assert.commandWorked(db.runCommand({drop: "c", writeConcern: {w: 1}}));
assert.commandWorked(insert(primary, [{_id: 1, again: true}]));
assert.commandWorked(primary.adminCommand({renameCollection: "test.c", to: "test.d", writeConcern: {w: 1}}));
assert.commandWorked(insert(primary, [{_id: 2}]));
letGo(secondary);
rst.awaitReplication();
assert.neq(before, uuid(primary));
assert.eq(uuid(primary), uuid(secondary));
assert.eq([[{_id: 2}], [{_id: 1, again: true}]], [held(secondary), held(secondary, "d")]);
rst.stopSet();
