/**
 * A retried findAndModify returns the document of the first time, also from another primary; a stream that asks for documents
 * before changes gets them there too. The oplog names the image, and `config.image_collection` shows it.
 * It fails if the images stay with the member that executed the change, or if the oplog shows them.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3, oplogSize: 500, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
let primary = rst.getPrimary();
const majority = {w: "majority", wtimeout: 60000};
const test = () => primary.getDB("test");
assert.commandWorked(test().createCollection("c", {changeStreamPreAndPostImages: {enabled: true}}));
assert.commandWorked(test().runCommand(
    {insert: "c", documents: [{_id: 1, n: 0}, {_id: 2, n: 0}, {_id: 3, n: 0}], writeConcern: majority}));
const start = assert.commandWorked(primary.adminCommand({hello: 1})).operationTime;

const writes = [
    {query: {_id: 1}, update: {$inc: {n: 1}}},
    {query: {_id: 2}, update: {$inc: {n: 1}}, new: true},
    {query: {_id: 3}, remove: true},
    {query: {_id: 4}, update: {$set: {n: 7}}, upsert: true, new: true},
].map((command) => Object.assign({findAndModify: "c"}, command,
    {lsid: {id: UUID()}, txnNumber: NumberLong(5), writeConcern: majority}));
const values = () => writes.map((command) => assert.commandWorked(test().runCommand(command)).value);
const first = values();
assert.eq([{_id: 1, n: 0}, {_id: 2, n: 1}, {_id: 3, n: 0}, {_id: 4, n: 7}], first);
assert.eq(first, values());

const kinds = ["preImage", "postImage", "preImage"];
function check(node) {
    node.setSecondaryOk();
    writes.slice(0, 3).forEach((command, i) => {
        const entry = node.getDB("local").oplog.rs.findOne({"lsid.id": command.lsid.id});
        assert.eq([kinds[i], undefined, undefined], [entry.needsRetryImage, entry.preImage, entry.postImage], tojson(entry));
        const row = node.getDB("config").image_collection.findOne({"_id.id": command.lsid.id});
        assert.eq([NumberLong(5), entry.ts, kinds[i], first[i], false],
            [row.txnNum, row.ts, row.imageKind, row.image, row.invalidated], tojson(row));
    });
}
rst.awaitReplication();
rst.nodes.forEach(check);

// An entry that would be larger than a document with its image reaches the others without it; they take it from their own documents.
const large = (c) => ({_id: 9, x: c.repeat(10 * 1024 * 1024)});
assert.commandWorked(test().runCommand({insert: "c", documents: [large("a")], writeConcern: majority}));
assert.commandWorked(test().runCommand({update: "c", updates: [{q: {_id: 9}, u: large("b")}], writeConcern: majority}));
const replaces = {findAndModify: "c", query: {_id: 9}, update: large("c"), lsid: {id: UUID()}, txnNumber: NumberLong(1),
    writeConcern: majority};
assert.eq("b", assert.commandWorked(test().runCommand(replaces)).value.x[0]);
assert.eq("b", assert.commandWorked(test().runCommand(replaces)).value.x[0]);
const replacesAndShows = {...replaces, update: large("e"), new: true, lsid: {id: UUID()}};
assert.eq("e", assert.commandWorked(test().runCommand(replacesAndShows)).value.x[0]);
assert.commandWorked(test().runCommand({delete: "c", deletes: [{q: {_id: 9}, limit: 1}], writeConcern: majority}));
// That of an upsert is the document it returns, whatever its size.
const makes = Object.assign({}, replaces, {query: {_id: 10}, update: large("d"), upsert: true, new: true, lsid: {id: UUID()}});
delete makes.update._id;
assert.eq("d", assert.commandWorked(test().runCommand(makes)).value.x[0]);
assert.eq("d", assert.commandWorked(test().runCommand(makes)).value.x[0]);

const successor = rst.getSecondaries()[0];
rst.stepUp(successor);
assert.soon(() => rst.getPrimary().host === successor.host);
primary = rst.getPrimary();
assert.eq(first, values());
for (const [command, letter] of [[replaces, "b"], [replacesAndShows, "e"]]) {
    const reply = assert.commandWorked(test().runCommand(command));
    assert.eq([9, letter, 10 * 1024 * 1024, 0], [reply.value._id, reply.value.x[0], reply.value.x.length, reply.retriedStmtId]);
    assert.eq([1, true], [reply.lastErrorObject.n, reply.lastErrorObject.updatedExisting]);
}
const again = assert.commandWorked(test().runCommand(makes));
assert.eq([10, false, 10, "d"],
    [again.value._id, again.lastErrorObject.updatedExisting, again.lastErrorObject.upserted, again.value.x[0]]);
assert.commandWorked(test().runCommand({delete: "c", deletes: [{q: {_id: 10}, limit: 1}], writeConcern: majority}));
assert.eq([1, 1, 7], test().c.find().sort({_id: 1}).toArray().map((d) => d.n));
const events = assert.commandWorked(test().runCommand({aggregate: "c", cursor: {}, pipeline: [
    {$changeStream: {startAtOperationTime: start, fullDocumentBeforeChange: "whenAvailable"}},
    {$match: {operationType: {$in: ["update", "delete"]}, "documentKey._id": {$lt: 9}}}]})).cursor.firstBatch;
assert.eq([{_id: 1, n: 0}, {_id: 2, n: 0}, {_id: 3, n: 0}], events.map((e) => e.fullDocumentBeforeChange));
rst.stopSet();
