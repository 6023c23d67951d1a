/**
 * Members name their term when they read an oplog: who is behind learns of a new one, and who led in an old one steps down.
 * It fails if a higher term is not learnt or what was read in a lower one is answered, or if a term that is known is refused.
 *
 * @tags: [requires_own_servers]
 */
import {startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const term = (node) => Number(assert.commandWorked(node.adminCommand({replSetGetStatus: 1})).term);
const local = (node, command) => {
    node.setSecondaryOk();
    return node.getDB("local").runCommand(command);
};
const find = (node, term) => local(node, {find: "oplog.rs", batchSize: 1, tailable: true, awaitData: true, term: term});

const secondary = rst.getSecondary();
assert.commandFailedWithCode(find(secondary, "1"), ErrorCodes.TypeMismatch);
for (const lower of [term(secondary), term(secondary) - 1, 0]) {
    assert.commandWorked(find(secondary, NumberLong(lower)));
}
const before = term(secondary);
assert.commandFailedWithCode(find(secondary, NumberLong(before + 1)), ErrorCodes.StaleTerm);
assert.gte(term(secondary), before + 1);

// One that leads steps down. A cursor outlives that, and is read from again by who knows its term.
const primary = rst.getPrimary();
const led = term(primary);
const {cursor} = assert.commandWorked(find(primary, NumberLong(led)));
const more = (term) => local(primary, {getMore: cursor.id, collection: "oplog.rs", batchSize: 1, term: NumberLong(term)});
assert.commandFailedWithCode(more(led + 10), ErrorCodes.StaleTerm);
assert.gte(term(primary), led + 10);
assert.commandWorked(more(led + 10));
assert.soon(() => term(rst.getPrimary()) > led + 10);
rst.awaitSecondaryNodes();
rst.stopSet();
