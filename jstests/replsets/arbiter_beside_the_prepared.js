/**
 * A set with an arbiter prepares no transactions: with one member away nothing that is prepared could be committed. Others go on.
 * It fails if a transaction is prepared there, or if one that was refused stays open.
 *
 * @tags: [requires_own_servers]
 */
import {startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {2: {arbiterOnly: true}}});
const primary = rst.getPrimary(), test = primary.getDB("test");
assert.commandWorked(test.runCommand({create: "c"}));
const lsid = {id: UUID()};
const fields = (number) => ({lsid, txnNumber: NumberLong(number), autocommit: false});
const write = (number) => assert.commandWorked(test.runCommand(
    Object.assign({insert: "c", documents: [{_id: number}], startTransaction: true}, fields(number))));
const end = (command, number) => primary.adminCommand(Object.assign({[command]: 1}, fields(number)));

write(1);
assert.commandFailedWithCode(end("prepareTransaction", 1), 148);
assert.commandFailedWithCode(end("commitTransaction", 1), ErrorCodes.NoSuchTransaction);
write(2);
assert.commandWorked(end("commitTransaction", 2));
assert.eq([{_id: 2}], test.c.find().toArray());
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
