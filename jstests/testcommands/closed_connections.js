/**
 * A client that dies leaves nothing running: what it waited for is interrupted on the node, through a router on the shards too, whether
 * the router asked on a connection of its own (a scan) or among others (one document by _id). A write runs to its end, as on the real
 * server, since a client may send it and leave.
 * Fails when a connection's end is not looked for while its request waits, when a router's call that was given up does not end the
 * shard's operation, or when the insert of a killed client is lost.
 */
import {shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const name = "closed_connections";
const routed = db.hello().msg === "isdbgrid";
const first = routed ? shardNames(db)[0] : undefined;
const testDB = db.getSiblingDB(name);
testDB.dropDatabase();
if (routed) {
    assert.commandWorked(db.adminCommand({enableSharding: name, primaryShard: first}));
}
const node = routed ? shardConnection(db, first) : db.getMongo();
assert.commandWorked(testDB.c.insert([{_id: 1}, {_id: 2}]));
const port = db.getMongo().host.split(":").pop();

// A client that runs a command and nothing else.
function client(command) {
    const code = `db.getSiblingDB("${name}").runCommand(${tojsononeline(command)})`;
    return _startMongoProgram({args: ["mongo", "--quiet", "--port", port, "--eval", code]});
}
function running(connection, comment) {
    const pipeline = [{$currentOp: {localOps: routed && connection === db.getMongo()}}, {$match: {"command.comment": comment}}];
    return connection.getDB("admin").aggregate(pipeline).toArray().length;
}
function kill(pid) {
    stopMongoProgramByPid(pid, 9);
}

for (const filter of [{x: {$ne: 5}}, {_id: 1}]) {
    const comment = "held " + tojsononeline(filter);
    const held = configureFailPoint(node, "waitInFindBeforeMakingBatch", {nss: testDB.c.getFullName()});
    const pid = client({find: "c", filter, comment});
    held.wait();
    assert.eq(1, running(node, comment), comment);
    kill(pid);
    assert.soon(() => running(node, comment) === 0, comment + " goes on");
    assert.eq(0, running(db.getMongo(), comment));
    held.off();
}

const comment = "written by somebody who left";
const block = {failCommands: ["insert"], blockConnection: true, blockTimeMS: 1500, namespace: testDB.c.getFullName()};
assert.commandWorked(db.adminCommand({configureFailPoint: "failCommand", mode: {times: 1}, data: block}));
const pid = client({insert: "c", documents: [{_id: 3}], comment});
assert.soon(() => running(db.getMongo(), comment) === 1);
kill(pid);
assert.soon(() => testDB.c.countDocuments({_id: 3}) === 1, "the insert is lost");
assert.commandWorked(db.adminCommand({configureFailPoint: "failCommand", mode: "off"}));
