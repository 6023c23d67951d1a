/**
 * A tailable cursor on a capped collection goes on when more is inserted, waits for that if asked to, and ends when what
 * it read last has been overtaken.
 * Fails when an empty batch ends the cursor, when a wait does not end with the insert or its time, or when a reader that
 * was overtaken goes on as if it had missed nothing.
 *
 * @tags: [assumes_unsharded_collection]
 */
const coll = db.tailable_cursors;
coll.drop();
const name = coll.getName();
const tail = {find: name, tailable: true};

assert.commandWorked(db.createCollection(name, {capped: true, size: 4096}));
let reply = assert.commandWorked(db.runCommand(tail));
assert.eq(0, reply.cursor.id, "nothing to tail in an empty collection");

assert.commandWorked(coll.insert([{_id: 1}, {_id: 2}]));
reply = assert.commandWorked(db.runCommand(tail));
const id = reply.cursor.id;
assert.neq(0, id);
assert.eq([{_id: 1}, {_id: 2}], reply.cursor.firstBatch);
function more(options) {
    return db.runCommand(Object.assign({getMore: id, collection: name}, options));
}
reply = assert.commandWorked(more());
assert.eq([], reply.cursor.nextBatch);
assert.eq(id, reply.cursor.id);
assert.commandWorked(coll.insert({_id: 3}));
assert.eq([{_id: 3}], assert.commandWorked(more()).cursor.nextBatch);

// Passed over and limited over all batches together; one that has given all it may stays open and gives nothing more.
for (const [options, ids] of [[{limit: 2}, [1, 2]], [{skip: 1}, [2, 3]], [{skip: 1, limit: 1}, [2]], [{limit: 9}, [1, 2, 3]],
                              [{limit: 2, batchSize: 1}, [1]]]) {
    const {cursor} = assert.commandWorked(db.runCommand(Object.assign({}, tail, options)));
    assert.eq(ids, cursor.firstBatch.map(doc => doc._id), tojson(options));
    assert.neq(0, cursor.id);
    const next = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: name})).cursor;
    assert.eq(options.batchSize ? [2] : [], next.nextBatch.map(doc => doc._id), tojson(options));
    assert.eq(cursor.id, next.id);
    assert.commandWorked(db.runCommand({killCursors: name, cursors: [cursor.id]}));
}
const none = assert.commandWorked(db.runCommand({find: "tailable_cursors_none", tailable: true})).cursor;
assert.eq(0, none.id);
assert.eq([], none.firstBatch);
db.tailable_cursors_view.drop();
assert.commandWorked(db.createView("tailable_cursors_view", name, []));
assert.commandFailedWithCode(db.runCommand({find: "tailable_cursors_view", tailable: true}), ErrorCodes.InvalidPipelineOperator);

// A time limit is for cursors that wait; its refusal leaves the cursor.
assert.commandFailedWithCode(more({maxTimeMS: 100}), ErrorCodes.BadValue);
assert.commandWorked(more());

// Overtaken.
for (let i = 0; i < 20; i++) {
    assert.commandWorked(coll.insert({pad: "x".repeat(1000)}));
}
assert.commandFailedWithCode(more(), ErrorCodes.CappedPositionLost);
assert.commandFailedWithCode(more(), ErrorCodes.CursorNotFound);

// One that waits: for its time, or for an insert.
const waiting = assert.commandWorked(db.runCommand({find: name, filter: {awaited: true}, tailable: true, awaitData: true}));
const wait = (ms) => db.runCommand({getMore: waiting.cursor.id, collection: name, maxTimeMS: ms});
let begun = Date.now();
assert.eq([], assert.commandWorked(wait(300)).cursor.nextBatch);
assert.gte(Date.now() - begun, 290);
const join = startParallelShell(
    funWithArgs((where) => {
        sleep(200);
        assert.commandWorked(db.getCollection(where).insert({_id: "news", awaited: true}));
    }, name),
    db.getMongo().port,
);
begun = Date.now();
assert.eq(["news"], assert.commandWorked(wait(30000)).cursor.nextBatch.map((d) => d._id));
assert.lt(Date.now() - begun, 20000);
join();
assert.commandWorked(db.runCommand({killCursors: name, cursors: [waiting.cursor.id]}));

// What cannot be tailed.
db.tailable_cursors_plain.drop();
assert.commandWorked(db.tailable_cursors_plain.insert({_id: 1}));
assert.commandFailedWithCode(db.runCommand({find: "tailable_cursors_plain", tailable: true}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: name, tailable: true, sort: {_id: 1}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: name, awaitData: true}), ErrorCodes.FailedToParse);
