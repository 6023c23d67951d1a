/**
 * The profile of each shard shows which commands reached it, with the client's filter and the version they were sent for.
 * It fails if a targeted command is executed on a shard that owns nothing of it, or arrives without the placement's version.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "targeting_profile", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
const ns = coll.getFullName();
for (let x = -10; x < 10; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x, v: 0}));
}
coll.find().itcount();
const profiles = {};
for (const name of [first, second]) {
    profiles[name] = shardConnection(db, name).getDB(testDB.getName());
    assert.commandWorked(profiles[name].setProfilingLevel(2));
}

/** The commands on the collection that each shard executes because of `act`. */
function executed(act) {
    const count = (name) => profiles[name].system.profile.find({ns: ns}).itcount();
    const before = {[first]: count(first), [second]: count(second)};
    act();
    const found = {};
    for (const name of [first, second]) {
        found[name] = profiles[name].system.profile.find({ns: ns}).sort({$natural: 1}).toArray().slice(before[name]);
    }
    return found;
}
// How often a shard is asked is the router's affair: what counts is who is asked for what.
const ops = (found) => [first, second].map((name) => Array.from(new Set(found[name].map((entry) => entry.op))));

let found = executed(() => assert.eq(1, coll.find({x: 5}).itcount()));
assert.eq([[], ["query"]], ops(found));
const [entry] = found[second];
assert.eq({x: 5}, entry.command.filter);
assert.eq(collectionEntry(coll).lastmodEpoch, entry.command.shardVersion.e);
assert.eq(1, entry.nreturned);
assert.gte(entry.millis, 0);
assert(entry.ts instanceof Date);

assert.eq([["query"], ["query"]], ops(executed(() => coll.find({v: 0}).itcount())));
assert.eq([["command"], []], ops(executed(() => coll.count({x: -5}))));
assert.eq([["command"], ["command"]], ops(executed(() => coll.aggregate([{$group: {_id: "$v"}}]).toArray())));
assert.eq([[], ["update"]], ops(executed(() => assert.commandWorked(coll.update({x: 5}, {$set: {v: 1}})))));
assert.eq([["update"], ["update"]],
          ops(executed(() => assert.commandWorked(coll.update({}, {$set: {w: 1}}, {multi: true})))));
assert.eq([["insert"], []], ops(executed(() => assert.commandWorked(coll.insert({x: -50})))));
assert.eq([["remove"], []], ops(executed(() => assert.commandWorked(coll.remove({x: -50})))));
assert.eq([[], ["command"]], ops(executed(() => coll.findAndModify({query: {x: 6}, update: {$set: {v: 2}}}))));

// More batches: the shards' cursors are asked for more.
found = executed(() => assert.eq(20, coll.find().batchSize(3).itcount()));
for (const name of [first, second]) {
    assert.eq("query", found[name][0].op);
    assert(found[name].slice(1).every((e) => e.op === "getmore"), tojson(found[name].map((e) => e.op)));
}
assert.gt(found[first].length + found[second].length, 2);

for (const name of [first, second]) {
    assert.commandWorked(profiles[name].setProfilingLevel(0));
    profiles[name].system.profile.drop();
}
assert.commandWorked(testDB.dropDatabase());
