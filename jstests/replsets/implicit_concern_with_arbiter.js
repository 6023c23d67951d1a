/**
 * With an arbiter in place of a third copy, a write that names no concern waits for no majority, and so says the default.
 * It fails if such writes stand still when the other copy does, or if another default is shown than is in force.
 *
 * @tags: [requires_own_servers]
 */
import {hold, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {2: {arbiterOnly: true}}});
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
const shown = assert.commandWorked(primary.adminCommand({getDefaultRWConcern: 1}));
assert.eq([1, "implicit"], [shown.defaultWriteConcern.w, shown.defaultWriteConcernSource], tojson(shown));
hold(secondary);
for (let i = 0; i < 3; i++) {
    assert.commandWorked(primary.getDB("test").runCommand({insert: "c", documents: [{_id: i}], maxTimeMS: 10000}));
    sleep(50);
}
const majority = primary.getDB("test").runCommand({insert: "c", documents: [{}], writeConcern: {w: "majority", wtimeout: 300}});
assert.eq(64, majority.writeConcernError.code, tojson(majority));
letGo(secondary);
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
