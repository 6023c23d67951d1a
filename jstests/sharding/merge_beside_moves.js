/**
 * Chunks of the source and of the target may move while $merge runs: every document is merged once.
 * It fails if a batch that met a moved chunk is lost or done twice, which a target that counts shows.
 *
 * @tags: [requires_sharding]
 */
import {chunksOf, freshDatabase, shardByRanges, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "merge_beside_moves", first);
const [source, target] = [testDB.source, testDB.target];
shardByRanges(source, {_id: 1}, [{_id: 300}], [first, second]);
shardByRanges(target, {k: 1}, [{k: 200}, {k: 400}], [first, second, first]);
const ids = Array.from({length: 600}, (_, i) => i);
assert.commandWorked(source.insert(ids.map((i) => ({_id: i, k: i}))));

const stop = new CountDownLatch(1);
const movers = ["source", "target"].map((name) => new Thread(function(host, ns, points, key, shards, stop) {
    const admin = new Mongo(host).getDB("admin");
    let moved = 0;
    for (let n = 0; stop.getCount() > 0; n++) {
        const bound = {};
        bound[key] = points[n % points.length];
        const reply = admin.runCommand({
            moveChunk: ns, find: bound, to: shards[Math.floor(n / points.length) % 2], _waitForDelete: true,
        });
        moved += reply.ok;
    }
    return moved;
}, db.getMongo().host, `${testDB.getName()}.${name}`, name === "source" ? [10, 310] : [10, 210, 410], name === "source" ? "_id" : "k", [second, first], stop));
movers.forEach((mover) => mover.start());

const count = [{$merge: {into: "target", whenMatched: [{$set: {n: {$add: ["$n", 1]}}}]}}];
let rounds = 0;
assert.commandWorked(testDB.runCommand({aggregate: "source", pipeline: [{$set: {n: 0}}, {$merge: "target"}], cursor: {}}));
const versions = () => [source, target].map((c) => Math.max(...chunksOf(c).map((chunk) => chunk.lastmod.getTime())));
const before = versions();
while (rounds < 5 || (rounds < 500 && versions().some((version, i) => version < before[i] + 2))) {
    assert.commandWorked(testDB.runCommand({aggregate: "source", pipeline: count, cursor: {}}));
    rounds++;
}
stop.countDown();
const moved = movers.map((mover) => mover.returnData());
assert(moved.every((n) => n > 0), tojson(moved));
assert.eq(600, target.find().itcount());
assert.eq([], target.find({n: {$ne: rounds}}).limit(5).toArray());
assert.eq(3, chunksOf(target).length);
assert.commandWorked(testDB.dropDatabase());
