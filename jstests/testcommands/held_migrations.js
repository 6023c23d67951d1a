/**
 * A migration stops at each of its steps, on the donor and on the recipient, and says so; its end can be made to fail.
 * Fails when a step's fail point does not hold it, when currentOp shows another number, or when a failed commit changes
 * the owner.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "held_migrations", {x: 1}, [{x: 0}], [first, first]);
const ns = coll.getFullName();
assert.commandWorked(coll.insert([...Array(20).keys()].map(x => ({x: x}))));
const nodes = {[first]: shardConnection(db, first), [second]: shardConnection(db, second)};
let [from, to] = [first, second];

function owner() {
    const uuid = db.getSiblingDB("config").collections.findOne({_id: ns}).uuid;
    return db.getSiblingDB("config").chunks.findOne({uuid: uuid, "min.x": 0}).shard;
}
function move() {
    return startParallelShell(
        funWithArgs(
            (name, shard) => assert.commandWorked(db.adminCommand({moveChunk: name, find: {x: 0}, to: shard, _waitForDelete: true})),
            ns,
            to,
        ),
        db.getMongo().port,
    );
}
function shown(node, desc) {
    const found = node.getDB("admin").aggregate([{$currentOp: {allUsers: true}}, {$match: {desc: desc, ns: ns}}]);
    return found.toArray().map(operation => operation.msg);
}

const steps = [...Array(6).keys()].map(n => [`moveChunkHangAtStep${n + 1}`, "MoveChunk", `step ${n + 1} of 6`])
    .concat([...Array(7).keys()].map(n => [`migrateThreadHangAtStep${n + 1}`, "migrateThread", `step ${n + 1} of 7`]));
for (const [point, desc, message] of steps) {
    const node = nodes[desc === "MoveChunk" ? from : to];
    const held = configureFailPoint(node, point);
    const join = move();
    held.wait();
    assert.eq([message], shown(node, desc), point);
    // The commit lies between the donor's steps 5 and 6; the recipient never knows of it while it is held.
    assert.eq(point === "moveChunkHangAtStep6" ? to : from, owner(), point);
    held.off();
    join();
    assert.eq(to, owner(), point);
    [from, to] = [to, from];
}
assert.eq(20, coll.find().itcount());

// The config server refuses the commit: the range stays.
const config = new Mongo(db.adminCommand({getShardMap: 1}).map.config.split("/")[1]);
let failing = configureFailPoint(config, "migrationCommitVersionError");
assert.commandFailedWithCode(db.adminCommand({moveChunk: ns, find: {x: 0}, to: to}), ErrorCodes.StaleEpoch);
failing.off();
assert.eq(from, owner());
failing = configureFailPoint(nodes[to], "failMigrationOnRecipient");
assert.commandFailed(db.adminCommand({moveChunk: ns, find: {x: 0}, to: to}));
failing.off();
assert.eq(from, owner());
assert.eq(20, coll.find().itcount());

// A recipient that is not told of the end learns it from the first request.
const untold = configureFailPoint(nodes[from], "doNotRefreshRecipientAfterCommit");
assert.commandWorked(db.adminCommand({moveChunk: ns, find: {x: 0}, to: to, _waitForDelete: true}));
untold.off();
function chunksKnown() {
    const metadata = nodes[to].adminCommand({getShardVersion: ns, fullMetadata: true}).metadata;
    return metadata && metadata.chunks ? metadata.chunks.length : 0;
}
// The lower chunk has never left the first shard.
const before = to === first ? 1 : 0;
assert.eq(before, chunksKnown());
assert.eq(20, coll.find().itcount());
assert.eq(before + 1, chunksKnown());
