/**
 * A migration that cannot be done must be refused before anything moves, with the reason in its code.
 * It fails if a wrong shard, collection or bound is accepted, or a refusal changes the metadata.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "move_chunk_errors", {x: 1}, [{x: 0}, {x: 10}], [first, first, first]);
const testDB = coll.getDB();
const ns = coll.getFullName();
assert.commandWorked(testDB.plain.insert({x: 1}));
const plain = testDB.plain.getFullName();
const before = chunksOf(coll);

function refused(command, codes) {
    const reply = db.adminCommand(command);
    if (codes) {
        assert.commandFailedWithCode(reply, codes, tojson(command));
    } else {
        assert.commandFailed(reply, tojson(command));
        assert(reply.errmsg, tojson(reply));
    }
}

// moveChunk.
refused({moveChunk: ns, find: {x: 5}, to: "no such shard"}, 70);
refused({moveChunk: plain, find: {x: 5}, to: second}, 118);
refused({moveChunk: `${testDB.getName()}.absent`, find: {x: 5}, to: second}, [26, 118]);
refused({moveChunk: ns, find: {x: 5}, bounds: [{x: 0}, {x: 10}], to: second});
refused({moveChunk: ns, to: second});
refused({moveChunk: ns, find: {y: 5}, to: second});
refused({moveChunk: ns, find: {x: {$gt: 5}}, to: second});
refused({moveChunk: ns, bounds: [{x: 0}, {x: 9}], to: second});
refused({moveChunk: ns, bounds: [{x: 0}], to: second});
refused({moveChunk: ns, bounds: [{y: 0}, {y: 10}], to: second});
refused({moveChunk: ns, find: {x: 5}});
refused({moveChunk: ns, find: {x: 5}, to: 7}, 14);
refused({moveChunk: "nodot", find: {x: 5}, to: second}, 73);
refused({moveChunk: 5, find: {x: 5}, to: second});

// moveRange.
refused({moveRange: ns, min: {x: 0}, toShard: "no such shard"}, 70);
refused({moveRange: plain, min: {x: 0}, toShard: second}, 118);
refused({moveRange: ns, toShard: second}, 72);
refused({moveRange: ns, min: {y: 0}, toShard: second}, 72);
refused({moveRange: ns, min: {x: 0, y: 0}, max: {x: 5, y: 0}, toShard: second}, 72);
refused({moveRange: ns, min: {x: 0}}, 40414);
refused({moveRange: ns, min: {x: 0}, toShard: second, unknownField: 1}, 40415);
refused({moveRange: ns, min: 5, toShard: second}, 14);
for (const field of ["forceJumbo", "waitForDelete", "secondaryThrottle"]) {
    refused({moveRange: ns, min: {x: 0}, toShard: second, [field]: "no"}, 14);
}
refused({moveChunk: ns, find: 5, to: second}, 14);
refused({moveChunk: ns, bounds: 5, to: second}, 14);

// On the wrong kind of node, or database.
assert.commandFailedWithCode(testDB.runCommand({moveChunk: ns, find: {x: 5}, to: second}), 13);
assert.commandFailedWithCode(testDB.runCommand({moveRange: ns, min: {x: 5}, toShard: second}), 13);
assert.commandFailed(shardConnection(db, first).adminCommand({moveRange: ns, min: {x: 5}, toShard: second}));

assert.eq(before, chunksOf(coll), "a refusal changes nothing");
assert.commandWorked(testDB.dropDatabase());
