/**
 * A write whose concern cannot be met is done all the same; the reply says what was not acknowledged, in its own field.
 * It fails if such a write is undone, waits without end, or the reason has another code.
 *
 * @tags: [requires_replication]
 */
const coll = db.write_concern_errors;
coll.drop();
const insert = (id, concern) => db.runCommand({insert: coll.getName(), documents: [{_id: id}], writeConcern: concern});

const met = [{w: 1}, {w: "majority"}, {w: 1, j: true}, {w: "majority", wtimeout: 1000}, {w: 1, j: false}, {}];
for (const [i, concern] of met.entries()) {
    const reply = assert.commandWorked(insert(`good${i}`, concern));
    assert(!("writeConcernError" in reply), tojson(reply));
}

// More members than there are.
let reply = insert("two", {w: 2, wtimeout: 200});
assert.eq(1, reply.ok);
assert.eq(1, reply.n);
assert.eq(100, reply.writeConcernError.code);
assert.eq("UnsatisfiableWriteConcern", reply.writeConcernError.codeName);
assert.eq("Not enough data-bearing nodes", reply.writeConcernError.errmsg);
assert.docEq({w: 2, wtimeout: 200, provenance: "clientSupplied"}, reply.writeConcernError.errInfo.writeConcern);
assert.eq(1, coll.find({_id: "two"}).itcount());

// A mode nobody defined.
reply = insert("mode", {w: "noSuchMode", wtimeout: 200});
assert.eq(1, reply.ok);
assert.eq(79, reply.writeConcernError.code);
assert.eq("UnknownReplWriteConcern", reply.writeConcernError.codeName);
assert.eq(1, coll.find({_id: "mode"}).itcount());

// Other commands tell it the same way.
const three = {w: 3, wtimeout: 100};
reply = db.runCommand({findAndModify: coll.getName(), query: {_id: "two"}, update: {$set: {a: 1}}, writeConcern: three});
assert.eq(1, reply.ok);
assert.eq(100, reply.writeConcernError.code);
assert.eq("two", reply.value._id);
reply = db.runCommand({createIndexes: coll.getName(), indexes: [{key: {a: 1}, name: "a_1"}], writeConcern: three});
assert.eq(1, reply.ok);
assert.eq(100, reply.writeConcernError.code);
assert.eq(2, coll.getIndexes().length);
reply = db.runCommand({drop: coll.getName(), writeConcern: three});
assert.eq(1, reply.ok);
assert.eq(100, reply.writeConcernError.code);
assert.eq(0, coll.find().itcount());

// Malformed: nothing is done.
for (const [concern, codes] of [
    [{w: -1}, [9]],
    [{w: 51}, [9]],
    [{w: {}}, [9, 14]],
    [{w: 1, unknown: 1}, [9, 40415]],
    [{j: "yes"}, [9, 14]],
]) {
    assert.commandFailedWithCode(insert("bad", concern), codes, tojson(concern));
}
assert.commandFailedWithCode(db.runCommand({insert: coll.getName(), documents: [{_id: 1}], writeConcern: 5}), 14);
assert.eq(0, coll.find().itcount());

// Reads take no write concern.
assert.commandFailedWithCode(db.runCommand({find: coll.getName(), writeConcern: {w: 1}}), 72);

// In the shell a write concern error is told apart from a write error.
const result = coll.insert({_id: "shell"}, {writeConcern: {w: 2, wtimeout: 100}});
assert.eq(1, result.nInserted);
assert(!result.hasWriteError());
assert(result.hasWriteConcernError());
assert.eq(100, result.getWriteConcernError().code);
coll.drop();
