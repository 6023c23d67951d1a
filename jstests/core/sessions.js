/**
 * Sessions group a client's operations, live on the server for a while and can be ended.
 * Fails when a session is not listed while it lives, goes on after being ended by force, or a malformed one is taken.
 */
const coll = db.sessions;
coll.drop();
assert.commandWorked(coll.insert([...Array(10).keys()].map(i => ({_id: i}))));
const name = coll.getName();

const started = assert.commandWorked(db.adminCommand({startSession: 1}));
assert.eq(30, started.timeoutMinutes);
assert(started.id.id instanceof BinData || started.id.id instanceof UUID, tojson(started));
assert.commandWorked(db.runCommand({find: name, lsid: started.id}));
assert.commandWorked(db.adminCommand({refreshSessions: [started.id]}));
assert.commandWorked(db.adminCommand({endSessions: [started.id]}));
// An ended session may be used again.
assert.commandWorked(db.runCommand({find: name, lsid: started.id}));

// The shell's sessions send theirs.
const session = db.getMongo().startSession();
const within = session.getDatabase(db.getName())[name];
assert.eq(10, within.find().itcount());
assert.commandWorked(within.insert({_id: 10}));
assert.neq(null, session.getSessionId());
const listed = db.getSiblingDB("admin").aggregate([{$listLocalSessions: {}}]).toArray().map(entry => tojson(entry._id.id));
assert.contains(tojson(session.getSessionId().id), listed);

// Those that are kept are listed where they are kept, and nowhere else.
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [{$listSessions: {}}], cursor: {}}), ErrorCodes.InvalidNamespace);
assert.gte(db.getSiblingDB("config").system.sessions.aggregate([{$listSessions: {}}]).itcount(), 0);

// Killing a session kills its cursors.
const cursor = assert.commandWorked(db.runCommand({find: name, batchSize: 2, lsid: session.getSessionId()})).cursor;
assert.commandFailedWithCode(db.runCommand({getMore: cursor.id, collection: name, lsid: started.id}), [50736, 50737, 50738, 50799, 50800, 50801, ErrorCodes.Unauthorized]);
assert.commandWorked(db.runCommand({killSessions: [session.getSessionId()]}));
assert.commandFailedWithCode(db.runCommand({getMore: cursor.id, collection: name, lsid: session.getSessionId()}), ErrorCodes.CursorNotFound);
session.endSession();

assert.commandFailedWithCode(db.runCommand({ping: 1, lsid: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({ping: 1, lsid: {}}), 40414);
assert.commandFailedWithCode(db.runCommand({ping: 1, lsid: {id: "x"}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({find: name, lsid: {id: BinData(0, "AAAA")}}), [ErrorCodes.TypeMismatch, 207]);
assert.commandFailedWithCode(db.runCommand({ping: 1, lsid: {id: UUID(), unheardOf: 1}}), 40415);
