/**
 * What only a primary does is refused by secondaries with the code that drivers retry on. It fails if a secondary executes it.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
assert.commandWorked(insert(rst.getPrimary(), [{_id: 1}], {w: 2, wtimeout: 20000}));
const secondary = rst.getSecondary();
const test = secondary.getDB("test");
const commands = [
    {insert: "c", documents: [{}]}, {update: "c", updates: [{q: {}, u: {$set: {a: 1}}}]}, {delete: "c", deletes: [{q: {}, limit: 0}]},
    {findAndModify: "c", remove: true}, {create: "d"}, {drop: "c"}, {createIndexes: "c", indexes: [{key: {a: 1}, name: "a"}]},
    {dropIndexes: "c", index: "*"}, {dropDatabase: 1}, {collMod: "c", validator: {}}, {convertToCapped: "c", size: 4096},
];
for (const command of commands) {
    const reply = assert.commandFailedWithCode(test.runCommand(command), 10107, tojson(command));
    assert.eq("NotWritablePrimary", reply.codeName);
    assert("topologyVersion" in reply, tojson(reply));
}
assert.commandFailedWithCode(secondary.adminCommand({appendOplogNote: 1, data: {a: 1}}), 10107);
assert.commandFailedWithCode(secondary.adminCommand({renameCollection: "test.c", to: "test.e"}), 10107);
assert.commandFailedWithCode(test.runCommand({find: "c", $readPreference: {mode: "primary"}}), 13435);
assert.commandFailedWithCode(test.runCommand({count: "c", $readPreference: {mode: "primary"}}), 13435);
rst.checkReplicatedDataHashes();
rst.stopSet();
