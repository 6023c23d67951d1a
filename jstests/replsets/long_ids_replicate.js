/**
 * The `_id` of a document stands twice in the entry of its insertion, and once in those of its changes: with one of nine million bytes
 * an entry is longer than a document may be.
 * It fails if the other members stop at such an entry, or if a restart does not bring the document back.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3});
rst.startSet();
rst.initiate();
let primary = rst.getPrimary();
let coll = primary.getDB("d").c;
const id = "x".repeat(9000000);
const everywhere = {writeConcern: {w: 3, wtimeout: 60000}};
assert.commandWorked(coll.insert({_id: id, n: 0}, everywhere));
assert.commandFailedWithCode(coll.insert({_id: id, n: 1}), ErrorCodes.DuplicateKey);
assert.commandWorked(coll.update({_id: id}, {$inc: {n: 1}}, everywhere));
assert.commandWorked(coll.update({_id: id}, {n: 2}, everywhere));
const session = primary.startSession({retryWrites: true});
assert.eq(2, session.getDatabase("d").c.findOneAndUpdate({_id: id}, {$inc: {n: 1}}).n);
session.endSession();
rst.awaitReplication();

const read = (node) => node.getDB("d").c.aggregate([{$project: {_id: 0, n: 1, length: {$strLenBytes: "$_id"}}}]).toArray();
for (const node of rst.nodes) {
    node.setSecondaryOk();
    assert.eq([{n: 3, length: id.length}], read(node));
    assert.eq(1, node.getDB("d").c.find({_id: id}).itcount());
}
// A member that restarts has it in its own log, and goes on with the others'.
const behind = rst.getSecondary();
rst.restart(behind);
rst.awaitSecondaryNodes();
rst.awaitReplication();
primary = rst.getPrimary();
coll = primary.getDB("d").c;
assert.commandWorked(coll.remove({_id: id}, everywhere));
for (const node of rst.nodes) {
    node.setSecondaryOk();
    assert.eq(0, node.getDB("d").c.countDocuments({}));
}
rst.stopSet();
