/**
 * A command that says by its UUID which collection it means does nothing to another one that has the name, and hears which name the meant
 * one has. It fails if a command reads or changes the other collection.
 */
const meant = db.meant, other = db.other;
meant.drop();
other.drop();
assert.commandWorked(meant.insert({_id: 1, a: 1}));
assert.commandWorked(other.insert({_id: 2, a: 2}));
assert.commandWorked(other.createIndex({a: 1}));
const uuidOf = (c) => db.getCollectionInfos({name: c.getName()})[0].info.uuid;
const uuid = uuidOf(meant);
const name = other.getName();
const indexes = other.getIndexes();

const commands = [
    {aggregate: name, pipeline: [], cursor: {}},
    {count: name},
    {distinct: name, key: "a"},
    {insert: name, documents: [{_id: 3}]},
    {update: name, updates: [{q: {}, u: {$set: {b: 1}}}]},
    {delete: name, deletes: [{q: {}, limit: 0}]},
    {createIndexes: name, indexes: [{key: {b: 1}, name: "b_1"}]},
    {dropIndexes: name, index: "a_1"},
    {collMod: name, validator: {x: 1}},
    {drop: name},
];
for (const command of commands) {
    const run = (uuid) => db.runCommand(Object.assign({}, command, {collectionUUID: uuid}));
    const check = (reply, actual) => {
        assert.commandFailedWithCode(reply, ErrorCodes.CollectionUUIDMismatch, tojson(command));
        const told = reply.writeErrors ? reply.writeErrors[0] : reply;
        assert.eq(db.getName(), told.db, tojson(reply));
        assert.eq(name, told.expectedCollection, tojson(reply));
        assert.eq(actual, told.actualCollection, tojson(reply));
        assert.eq(["insert", "update", "delete"].includes(Object.keys(command)[0]), reply.hasOwnProperty("writeErrors"), tojson(reply));
    };
    check(run(uuid), meant.getName());
    const nobodys = UUID();
    check(run(nobodys), null);
}
// Each statement of a batch that goes on after errors fails.
const batch = db.runCommand({insert: name, documents: [{_id: 3}, {_id: 4}], ordered: false, collectionUUID: uuid});
assert.eq([0, 1], batch.writeErrors.map((e) => e.index));
assert.eq([{_id: 2, a: 2}], other.find().toArray());
assert.eq(indexes, other.getIndexes());

// The meant one is served.
assert.eq(1, assert.commandWorked(db.runCommand({count: meant.getName(), collectionUUID: uuid})).n);
assert.commandWorked(db.runCommand({insert: meant.getName(), documents: [{_id: 3}], collectionUUID: uuid}));
assert.eq(2, db.runCommand({aggregate: meant.getName(), pipeline: [], cursor: {}, collectionUUID: uuid}).cursor.firstBatch.length);
assert.commandWorked(db.runCommand({drop: meant.getName(), collectionUUID: uuid}));
