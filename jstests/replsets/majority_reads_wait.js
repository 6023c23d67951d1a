/**
 * Reads of level majority and linearizable show nothing that may yet be rolled back.
 * It fails if they show what the primary alone has, or do not show it afterwards; or if a primary that nobody follows reads
 * linearizably, where another may have been elected.
 *
 * @tags: [requires_own_servers]
 */
import {hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const [primary, secondaries] = [rst.getPrimary(), rst.getSecondaries()];
const db = primary.getDB("test");
assert.commandWorked(insert(primary, [{_id: 1}], {w: 3, wtimeout: 20000}));
const points = secondaries.map(hold);
const read = (level, more = {}) => db.runCommand(Object.assign({find: "c", filter: {_id: 2}, readConcern: {level: level}}, more));
// Nothing is pending; its own entry stays on its way, and what follows stays here.
assert.commandFailedWithCode(read("linearizable", {filter: {_id: 1}, maxTimeMS: 400}), 50);
points.forEach((point) => point.wait());
assert.commandWorked(insert(primary, [{_id: 2}]));
assert.eq(1, assert.commandWorked(read("local")).cursor.firstBatch.length);
const early = read("majority", {maxTimeMS: 400});
assert(early.ok ? early.cursor.firstBatch.length === 0 : early.code === 50, tojson(early));
assert.commandFailedWithCode(read("linearizable", {maxTimeMS: 400}), 50);
assert.commandFailedWithCode(
    secondaries[0].getDB("test").runCommand(
        {find: "c", readConcern: {level: "linearizable"}, $readPreference: {mode: "secondary"}}), 10107);
secondaries.forEach(letGo);
assert.eq(1, assert.commandWorked(read("linearizable", {maxTimeMS: 20000})).cursor.firstBatch.length);
assert.eq(1, assert.commandWorked(read("majority")).cursor.firstBatch.length);
rst.stopSet();
