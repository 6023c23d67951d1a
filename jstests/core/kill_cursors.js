/**
 * Clients that lose interest in a cursor end it, and are told which ones there were.
 * Fails when a killed cursor answers another getMore, or killCursors counts living and unknown ones wrongly.
 */
const coll = db.kill_cursors;
coll.drop();
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i}))));
const name = coll.getName();

function open() {
    return assert.commandWorked(db.runCommand({find: name, batchSize: 2})).cursor.id;
}
const first = open();
const second = open();
const unknown = NumberLong("987654321");

const reply = assert.commandWorked(db.runCommand({killCursors: name, cursors: [first, unknown, second]}));
assert.sameMembers([first, second].map(tojson), reply.cursorsKilled.map(tojson));
assert.eq([unknown], reply.cursorsNotFound);
assert.eq([], reply.cursorsAlive);
assert.eq([], reply.cursorsUnknown);
for (const id of [first, second]) {
    assert.commandFailedWithCode(db.runCommand({getMore: id, collection: name}), ErrorCodes.CursorNotFound);
}
const again = assert.commandWorked(db.runCommand({killCursors: name, cursors: [first]}));
assert.eq([], again.cursorsKilled);
assert.eq([first], again.cursorsNotFound);

// Closing the shell's cursor kills the server's.
const cursor = coll.find().batchSize(2);
cursor.next();
const id = cursor.getId();
assert.neq(0, id);
cursor.close();
assert.commandFailedWithCode(db.runCommand({getMore: id, collection: name}), ErrorCodes.CursorNotFound);

// Dropping the collection ends the cursors on it; a router may first hand out what it holds already.
const doomed = open();
assert(coll.drop());
let end;
for (let i = 0; i < 8; i++) {
    end = db.runCommand({getMore: doomed, collection: name, batchSize: 2});
    if (!end.ok) {
        break;
    }
    assert.neq(0, end.cursor.id, "the cursor came to its end over a dropped collection");
}
assert.commandFailedWithCode(end, [ErrorCodes.QueryPlanKilled, ErrorCodes.CursorNotFound]);

assert.commandFailedWithCode(db.runCommand({killCursors: name}), 40414);
assert.commandFailedWithCode(db.runCommand({killCursors: name, cursors: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({killCursors: name, cursors: ["1"]}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({killCursors: "", cursors: [NumberLong(1)]}), ErrorCodes.InvalidNamespace);
