// A set of three: a connection to all of it finds the primary, and the next one when that is killed.
Natives.watch("_startMongoProgram", "_stopMongoProgram", "stopMongoProgramByPid", "waitProgram", "Mongo", "Mongo.prototype.runCommand",
              "Mongo.prototype.isReplicaSetConnection", "Mongo.prototype.isReplicaSetMember", "_forgetReplSet");
const set = TestSets.start("natives_three", 3);
const first = TestSets.primary(set);
const conn = new Mongo(set.uri);
assert.eq([true, true], [conn.isReplicaSetConnection(), conn.isReplicaSetMember()]);
const insert = (_id) => conn.runCommand("natives", {insert: "c", documents: [{_id}], writeConcern: {w: "majority", wtimeout: 60000}}, 0);
assert.commandWorked(insert(1));

stopMongoProgramByPid(first.pid, 9);
assert.eq(-9, Number(waitProgram(first.pid)));
set.nodes = set.nodes.filter((node) => node !== first);
const second = TestSets.primary(set);
assert(first.port !== second.port);
// The connection that has broken says so once.
assert.soon(() => {
    try {
        return insert(2).ok === 1;
    } catch (error) {
        return false;
    }
}, "it does not find the next primary", 60000);
const read = {find: "c", sort: {_id: 1}, readConcern: {level: "majority"}};
assert.eq([1, 2], assert.commandWorked(conn.runCommand("natives", read, 0)).cursor.firstBatch.map((doc) => doc._id));
_forgetReplSet("natives_three");
conn.close();
set.nodes.forEach(TestServers.stop);
Natives.done();
