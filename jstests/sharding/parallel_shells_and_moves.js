/**
 * Shells in processes of their own work on a collection whose ranges move, with scans, counts and bulk writes.
 * It fails if a scan misses a document that was there all the time, or a bulk result does not say what was done.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, hastenRangeDeletion, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const restore = hastenRangeDeletion(db);
const coll = freshCollection(db, "parallel_shells_and_moves", {k: 1}, [{k: 100}], [first, second]);
const testDB = coll.getDB();
const documents = [];
for (let k = 0; k < 200; k++) {
    documents.push({_id: k, k: k, stays: true});
}
assert.commandWorked(coll.insert(documents));
const done = testDB.done;

const scan = startParallelShell(function() {
    const testDB = db.getSiblingDB("parallel_shells_and_moves");
    let scans = 0;
    while (testDB.done.find({_id: "moves"}).itcount() === 0 || scans < 5) {
        assert.eq(200, testDB.c.find({stays: true}).batchSize(13).itcount());
        assert.eq(200, testDB.c.find({stays: true}).sort({k: -1}).batchSize(50).toArray().length);
        assert.eq(200, testDB.c.countDocuments({stays: true}));
        scans++;
    }
    assert.commandWorked(testDB.done.insert({_id: "scans", n: scans}));
}, db.getMongo().port);

const write = startParallelShell(function() {
    const testDB = db.getSiblingDB("parallel_shells_and_moves");
    let rounds = 0;
    while (testDB.done.find({_id: "moves"}).itcount() === 0 || rounds < 5) {
        const bulk = testDB.c.initializeUnorderedBulkOp();
        for (let i = 0; i < 20; i++) {
            bulk.insert({_id: `w${rounds}-${i}`, k: i * 10 + 0.5, round: rounds});
            bulk.find({k: i * 10}).updateOne({$inc: {rounds: 1}});
        }
        const result = bulk.execute();
        assert.eq(20, result.nInserted, tojson(result));
        assert.eq(20, result.nModified, tojson(result));
        // In one range: of several shards it may miss what moves between them, as long as moves are not held back.
        const removed = testDB.c.deleteMany({round: rounds, k: {$gte: 0, $lt: 100}}).deletedCount;
        assert.eq(10, removed);
        rounds++;
    }
    assert.commandWorked(testDB.done.insert({_id: "writes", n: rounds}));
}, db.getMongo().port);

for (let i = 0; i < 8; i++) {
    const bounds = i % 2 ? {min: {k: 100}, max: {k: MaxKey}} : {min: {k: 0}, max: {k: 100}};
    const owner = i % 4 < 2 ? second : first;
    assert.soon(() => {
        const reply = db.adminCommand(Object.assign({moveRange: coll.getFullName(), toShard: owner}, bounds));
        // The remains of an earlier move may still be here, held by a cursor.
        assert(reply.ok || [96, 117, 200, 262].includes(reply.code), tojson(reply));
        return reply.ok;
    }, "the range could not be moved", 60 * 1000, 50);
}
assert.commandWorked(done.insert({_id: "moves"}));
scan();
write();
const rounds = done.findOne({_id: "writes"}).n;
assert.gte(done.findOne({_id: "scans"}).n, 5);
assert.eq(200 + 10 * rounds, coll.find().itcount());
assert.eq([{_id: null, n: 20 * rounds}], coll.aggregate([{$group: {_id: null, n: {$sum: "$rounds"}}}]).toArray());
restore();
assert.commandWorked(testDB.dropDatabase());
