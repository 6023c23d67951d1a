/**
 * A findAndModify that is sent again to the next primary returns what it returned, and changes nothing again.
 * It fails if the new primary does not know it, executes it once more, or has lost the document that it returned.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
assert.commandWorked(insert(rst.getPrimary(), [{_id: 1, n: 1}, {_id: 2, n: 1}], {w: 3}));
const lsid = {id: UUID()};
const forms = [
    {query: {_id: 1}, update: {$inc: {n: 1}}},
    {query: {_id: 1}, update: {$inc: {n: 1}}, new: true},
    {query: {_id: 2}, remove: true},
    {query: {_id: 3}, update: {$inc: {n: 1}}, upsert: true, new: true},
    {query: {_id: 4}, update: {$inc: {n: 1}}},
];
const send = (node, i) => {
    const command = Object.assign({findAndModify: "c", lsid, txnNumber: NumberLong(i), writeConcern: {w: "majority"}}, forms[i]);
    const reply = assert.commandWorked(node.getDB("test").runCommand(command), tojson(forms[i]));
    return {value: reply.value, lastErrorObject: reply.lastErrorObject};
};
// One number a session: only the newest statement of a session is repeated.
for (let i = 0; i < forms.length; i++) {
    const [from, to] = [rst.getPrimary(), rst.getSecondaries()[0]];
    const first = send(from, i);
    const before = from.getDB("test").c.find().sort({_id: 1}).toArray();
    rst.stepUp(to);
    rst.awaitNodesAgreeOnPrimary(60000, rst.nodes, to);
    assert.soon(() => to.adminCommand({hello: 1}).isWritablePrimary);
    assert.eq(first, send(to, i), tojson(forms[i]));
    assert.eq(before, to.getDB("test").c.find().sort({_id: 1}).toArray(), tojson(forms[i]));
    rst.awaitSecondaryNodes();
}
rst.checkReplicatedDataHashes();
rst.stopSet();
