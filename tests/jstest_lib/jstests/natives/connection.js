// Connections, cursors and sessions against a server.
const kMethods = ["runCommand", "runCommandWithMetadata", "_runCommandImpl", "find", "insert", "update", "remove", "auth", "logout", "close", "cursorFromId",
    "cursorHandleFromId", "isReplicaSetConnection", "isReplicaSetMember", "isMongos", "getMinWireVersion", "getMaxWireVersion",
    "getClientRPCProtocols", "setClientRPCProtocols", "getServerRPCProtocols", "getApiParameters", "_markNodeAsFailed", "_startSession"];
Natives.watch("Mongo", "_forgetReplSet", "_replMonitorStats", ...kMethods.map((name) => "Mongo.prototype." + name));
const server = TestServers.start();
const address = "localhost:" + server.port;
const conn = new Mongo(address);
assert.eq(address, conn.host);
assert.eq([false, false], [conn.slaveOk, conn.secondaryOk].map(Boolean));
assert(conn.fullOptions !== undefined);
assert(!(typeof conn.isTLS === "function" ? conn.isTLS() : conn.isTLS));
const db = conn.getDB("natives");

// The hooks of properties: a database's unknown names are collections, a collection's are longer names, a query's are results.
assert.eq(["natives.a", "natives.a.b"], [db.a.getFullName(), db.a.b.getFullName()]);
assert(connect(address + "/natives").getMongo() instanceof Mongo);

assert.eq(1, conn.runCommand("admin", {ping: 1}, 0).ok);
assert.eq(1, conn.runCommandWithMetadata("admin", {}, {ping: 1}).commandReply.ok);
assert.eq(1, conn._runCommandImpl("admin", {ping: 1}, 0, undefined).ok);
conn.insert("natives.a", [{_id: 1, x: 1}, {_id: 2, x: 1}, {_id: 3, x: 1}], 0);
conn.update("natives.a", {_id: 1}, {$set: {x: 2}}, false, false);
conn.update("natives.a", {x: 1}, {$set: {x: 3}}, false, true);
conn.update("natives.a", {_id: 4}, {_id: 4, x: 9}, true, false);
conn.remove("natives.a", {_id: 3}, true);
assert.eq([[1, 2], [2, 3], [4, 9]], db.a.find().toArray().map((doc) => [doc._id, doc.x]));
assert.eq(2, db.a.find()[1]._id);

// Cursors: two to a batch.
const methods = ["next", "hasNext", "objsLeftInBatch", "close", "isClosed", "getId", "zeroCursorId", "readOnly"];
const cursor = Natives.watchMethods("Cursor", conn.find("natives.a", {}, null, 0, 0, 2, 0), methods);
assert(cursor.hasNext());
assert.eq(2, cursor.objsLeftInBatch());
assert.eq(1, cursor.next()._id);
assert.eq(1, cursor.objsLeftInBatch());
assert(Number(cursor.getId()) !== 0 && !cursor.isClosed());
cursor.close();
assert(cursor.isClosed());
const fixed = Natives.watchMethods("Cursor", conn.find("natives.a", {_id: 1}, {x: 1}, 1, 0, 0, 0), methods);
fixed.readOnly();
const doc = fixed.next();
assert.throws(() => { "use strict"; doc.x = 5; });
assert(!fixed.hasNext());
fixed.zeroCursorId();

const opened = assert.commandWorked(db.runCommand({find: "a", batchSize: 1}));
const rest = conn.cursorFromId("natives.a", opened.cursor.id, 1);
assert.eq([2, 4], [rest.next()._id, rest.next()._id]);
const again = assert.commandWorked(db.runCommand({find: "a", batchSize: 1}));
const handle = conn.cursorHandleFromId("natives.a", again.cursor.id);
handle.close();
assert.eq(43, db.runCommand({getMore: again.cursor.id, collection: "a"}).code);

// Sessions.
const session = Natives.watchMethods("Session", conn._startSession({}), ["getId", "getTxnNumber", "setTxnNumber", "incrementTxnNumber", "getTxnState", "setTxnState", "end"]);
assert.eq(4, session.getId().id.subtype());
assert.eq("inactive", session.getTxnState());
session.setTxnState("active");
assert.eq("active", session.getTxnState());
session.setTxnNumber(NumberLong(5));
session.incrementTxnNumber();
assert.eq(6, Number(session.getTxnNumber()));
session.end();

assert.eq([false, false, false], [conn.isReplicaSetConnection(), conn.isReplicaSetMember(), conn.isMongos()]);
assert(conn.getMinWireVersion() <= conn.getMaxWireVersion() && conn.getMaxWireVersion() >= 21);
assert.eq("string", typeof conn.getClientRPCProtocols());
conn.setClientRPCProtocols("opMsgOnly");
assert.eq("string", typeof conn.getServerRPCProtocols());
assert.eq({}, conn.getApiParameters());
const strict = new Mongo(address, undefined, {api: {version: "1", strict: true}});
assert.eq("1", strict.getApiParameters().apiVersion);
assert.throws(() => conn.auth({user: "nobody", pwd: "nothing", db: "admin"}));
conn.logout("admin");
conn._markNodeAsFailed(address, 6, "as intended");
// Encryption by clients is refused, whatever is asked of it.
for (const name of ["encrypt", "decrypt", "generateDataKey"]) {
    assert(/not supported/.test(assert.throws(() => conn[name]()).message), name);
}

// A set: the connection finds its primary.
const member = TestServers.start("--replSet", "natives");
const host = "localhost:" + member.port;
assert.commandWorked(member.conn.adminCommand({replSetInitiate: {_id: "natives", members: [{_id: 0, host}]}}));
const set = new Mongo("natives/" + host);
assert.eq([true, true], [set.isReplicaSetConnection(), set.isReplicaSetMember()]);
assert.commandWorked(set.runCommand("natives", {insert: "a", documents: [{}]}, 0));
assert.eq("natives", _replMonitorStats("natives").name ?? "natives");
_forgetReplSet("natives");
set.close();
conn.close();
assert.throws(() => conn.runCommand("admin", {ping: 1}, 0));
TestServers.stop(member);
TestServers.stop(server);
Natives.done();
