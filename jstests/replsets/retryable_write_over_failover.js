/**
 * A retryable write that comes again to the next primary was executed once, whatever its kind.
 * It fails if the next primary does it again, or answers otherwise than the first did.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
assert.commandWorked(insert(old, [{_id: 1, n: 0}], {w: 3, wtimeout: 20000}));
const numbered = (number, command) => Object.assign(
    command, {lsid: lsid, txnNumber: NumberLong(number), writeConcern: {w: "majority", wtimeout: 20000}});
const lsid = {id: UUID()};
const commands = [
    {insert: "c", documents: [{_id: 2}, {_id: 3}]},
    {update: "c", updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}]},
    {findAndModify: "c", query: {_id: 1}, update: {$inc: {n: 10}}, new: true},
    {delete: "c", deletes: [{q: {_id: 3}, limit: 1}]},
].map((c, i) => numbered(i + 1, c));
const results = commands.map((c) => assert.commandWorked(old.getDB("test").runCommand(c)));
rst.stepUp(rst.getSecondary());
const db = rst.getPrimary().getDB("test");
// Only the newest number of a session is known.
const again = assert.commandWorked(db.runCommand(commands[3]));
assert.eq([results[3].n, 1], [again.n, again.retriedStmtIds.length], tojson(again));
assert.commandFailedWithCode(db.runCommand(commands[0]), 225);
assert.eq([{_id: 1, n: 11}, {_id: 2}], db.c.find().sort({_id: 1}).toArray());
const image = numbered(5, {findAndModify: "c", query: {_id: 1}, update: {$inc: {n: 100}}, new: true});
const value = assert.commandWorked(db.runCommand(image)).value;
rst.stepUp(old);
assert.eq([111, 111], [value.n, assert.commandWorked(old.getDB("test").runCommand(image)).value.n]);
rst.stopSet();
