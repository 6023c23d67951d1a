/**
 * `maxTimeMS` of a query is for all its batches together: a getMore has what the batches before it have left, and time in which
 * the client does nothing does not count.
 * It fails if a getMore has no limit, if each has the whole of it, or if a cursor that waits for its client runs out of time.
 */
const coll = db[jsTestName()];
coll.drop();
assert.commandWorked(coll.insert(Array.from({length: 40}, (_, i) => ({_id: i}))));
const more = (id) => db.runCommand({getMore: id, collection: coll.getName(), batchSize: 2});

for (const command of [
    {find: coll.getName(), batchSize: 2}, {aggregate: coll.getName(), pipeline: [], cursor: {batchSize: 2}},
]) {
    const begin = (more) => assert.commandWorked(db.runCommand(Object.assign({}, command, more))).cursor.id;

    // The client's own time is not counted.
    const patient = begin({maxTimeMS: 400});
    sleep(500);
    assert.commandWorked(more(patient), tojson(command));
    assert.commandWorked(more(patient), tojson(command));

    // A getMore is limited as the first command is, and only then.
    const [limited, free] = [begin({maxTimeMS: 60000}), begin({})];
    const point = (mode) => db.adminCommand({configureFailPoint: "maxTimeAlwaysTimeOut", mode});
    assert.commandWorked(point("alwaysOn"));
    assert.commandFailedWithCode(more(limited), ErrorCodes.MaxTimeMSExpired, tojson(command));
    assert.commandWorked(more(free), tojson(command));
    assert.commandWorked(point("off"));
}

// Each batch takes some 40 ms, and all of them some 800.
const slow = {find: coll.getName(), filter: {$where: "sleep(20); return true;"}, batchSize: 2, maxTimeMS: 300};
const id = assert.commandWorked(db.runCommand(slow)).cursor.id;
assert.commandWorked(more(id));
let reply;
for (let batches = 0; batches < 18 && (reply = more(id)).ok; batches++);
assert.commandFailedWithCode(reply, ErrorCodes.MaxTimeMSExpired);
