/**
 * Operators end what a client does by its session, its user or all at once.
 * Fails when a session's cursors survive, other sessions' die, or a malformed pattern is taken.
 */
const coll = db.kill_all_sessions;
coll.drop();
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i}))));
const name = coll.getName();
const one = {id: UUID()};
const two = {id: UUID()};

function open(lsid) {
    return assert.commandWorked(db.runCommand({find: name, batchSize: 2, lsid: lsid})).cursor.id;
}
function more(cursor, lsid) {
    return db.runCommand({getMore: cursor, collection: name, batchSize: 1, lsid: lsid});
}
const first = open(one);
const second = open(two);
assert.commandWorked(more(first, one));

assert.commandWorked(db.runCommand({killAllSessionsByPattern: [{lsid: {id: one.id, uid: computeUid()}}]}));
assert.commandFailedWithCode(more(first, one), ErrorCodes.CursorNotFound);
assert.commandWorked(more(second, two));

// The session itself may be used again.
const again = open(one);
assert.commandWorked(more(again, one));
assert.commandWorked(db.runCommand({killSessions: [one, two]}));
assert.commandFailedWithCode(more(again, one), ErrorCodes.CursorNotFound);
assert.commandFailedWithCode(more(second, two), ErrorCodes.CursorNotFound);

assert.commandFailedWithCode(db.runCommand({killSessions: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({killSessions: [{}]}), 40414);
assert.commandFailedWithCode(db.runCommand({killSessions: null}), 40414);
assert.commandFailedWithCode(db.runCommand({killSessions: [{session: UUID()}]}), 40415);
assert.commandFailedWithCode(db.runCommand({killSessions: [{id: BinData(0, "AAAAAAAAAAAAAAAAAAAAAA==")}]}), ErrorCodes.TypeMismatch);
assert.commandWorked(db.runCommand({killSessions: [null, one]}));
assert.commandWorked(db.runCommand({killSessions: [one], unheardOf: 1}));
assert.commandFailedWithCode(db.runCommand({killAllSessionsByPattern: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({killAllSessions: 1}), ErrorCodes.TypeMismatch);

/** The digest of no user, which sessions without authentication carry. */
function computeUid() {
    return BinData(0, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}
