/**
 * A stage on a router reads another collection batch by batch, as far as its result is wanted, and what it has open on shards ends with the
 * cursor that reads it: at a limit, at the end, after a failure or a kill. (No $unionWith runs in a transaction.)
 * It fails if a router collects the whole result of a sub-pipeline before it uses any of it, or leaves a cursor of one open.
 *
 * @tags: [requires_own_servers]
 */
import {openCursors, ownCluster, shardByRanges} from "jstests/sharding/libs/cluster.js";

const {st, first, second, testDB} = ownCluster("sub_pipelines");
const shards = [st.shard0, st.shard1];
const openOnShards = () => openCursors(...shards);
const openOnRouter = () => openCursors(st.s);
function noneOpen(after) {
    assert.soon(() => openOnShards() === 0, () => `${after}: ${openOnShards()} cursors are left on the shards`);
    assert.eq(0, openOnRouter(), after);
}
const ids = (documents) => documents.map((d) => d._id).sort((a, b) => a - b);
const all = Array.from({length: 400}, (_, i) => i);

// 20 MB on each shard, and something to begin with.
for (const coll of [testDB.large, testDB.small]) {
    shardByRanges(coll, {_id: 1}, [{_id: 200}], [first, second]);
}
const pad = "x".repeat(100 * 1000);
for (let from = 0; from < 400; from += 50) {
    assert.commandWorked(testDB.large.insert(all.slice(from, from + 50).map((i) => ({_id: i, pad: pad}))));
}
assert.commandWorked(testDB.small.insert(all.map((i) => ({_id: i}))));
assert.commandWorked(testDB.one.insert({_id: 0}));

const union = {$unionWith: "large"};
const nested = {$unionWith: {coll: "one", pipeline: [{$match: {_id: 1}}, union]}};
const none = {$match: {_id: -1}};
const open = (stages, batchSize, more) => assert.commandWorked(testDB.runCommand(
    Object.assign({aggregate: "one", pipeline: stages, cursor: {batchSize: batchSize}}, more))).cursor;
const next = (id, more) => testDB.runCommand(Object.assign({getMore: id, collection: "one", batchSize: 50}, more));

// How many further batches the shards are asked for.
function batchesOf(act) {
    const total = () => shards.map((shard) => {
        const getMore = assert.commandWorked(shard.adminCommand({serverStatus: 1})).metrics.commands.getMore;
        return getMore ? Number(getMore.total) : 0;
    }).reduce((a, b) => a + b);
    const before = total();
    act();
    return total() - before;
}
for (const stage of [union, nested]) {
    assert.eq(0, batchesOf(() => assert.eq(5, testDB.one.aggregate([none, stage, {$limit: 5}]).itcount())), tojson(stage));
    noneOpen("after a limit");
    assert.eq(0, batchesOf(() => assert.eq(150, testDB.one.aggregate([none, stage, {$limit: 150}]).itcount())), tojson(stage));
    noneOpen("after a larger limit");
    assert.eq(all, ids(testDB.one.aggregate([none, stage], {cursor: {batchSize: 50}}).toArray()));
    noneOpen("at the end");
}
// The result of a sub-pipeline is larger than a batch.
for (const from of ["large", "small"]) {
    const lookup = {$lookup: {from: from, pipeline: [], as: "all"}};
    assert.eq([{_id: 0, n: 400}], testDB.one.aggregate([lookup, {$project: {n: {$size: "$all"}}}]).toArray());
    const byValue = {$lookup: {from: from, let: {id: "$_id"}, pipeline: [{$match: {$expr: {$gte: ["$_id", "$$id"]}}}], as: "all"}};
    const counts = testDB.small.aggregate([{$match: {_id: {$in: [10, 390]}}}, byValue, {$project: {n: {$size: "$all"}}}, {$sort: {_id: 1}}]);
    assert.eq([{_id: 10, n: 390}, {_id: 390, n: 10}], counts.toArray());
}
noneOpen("after lookups");

// More than a lookup may hold.
const limit = (bytes) => assert.commandWorked(
    st.s.adminCommand({setParameter: 1, internalLookupStageIntermediateDocumentMaxSizeBytes: bytes})).was;
const was = limit(5 * 1000 * 1000);
assert.eq(0, batchesOf(() => assert.commandFailedWithCode(testDB.runCommand(
    {aggregate: "one", pipeline: [{$lookup: {from: "large", pipeline: [], as: "all"}}], cursor: {}}), 4568)));
limit(was);
noneOpen("after too large a lookup");

// The outer cursor is killed, fails, or ends with its session.
for (const stage of [union, nested]) {
    let cursor = open([none, stage], 5);
    assert.eq(5, cursor.firstBatch.length);
    assert(openOnShards() > 0, "everything was fetched at once");
    assert.eq(1, openOnRouter());
    assert.commandWorked(testDB.runCommand({killCursors: "one", cursors: [cursor.id]}));
    noneOpen("after a kill");

    cursor = open([none, stage], 5);
    const point = configureFailPoint(st.shard1, "failCommand",
                                     {failInternalCommands: true, failCommands: ["getMore"], errorCode: 8}, "alwaysOn");
    let reply;
    do {
        reply = next(cursor.id);
    } while (reply.ok);
    assert.commandFailedWithCode(reply, 8);
    point.off();
    noneOpen("after a failure");

    const lsid = assert.commandWorked(testDB.adminCommand({startSession: 1})).id;
    cursor = open([none, stage], 5, {lsid: lsid});
    assert.commandWorked(next(cursor.id, {lsid: lsid}));
    assert.commandWorked(testDB.adminCommand({killSessions: [{id: lsid.id}]}));
    noneOpen("after its session");
}

// A range moves between two batches.
const moves = [
    [{$unionWith: "small"}, {min: {_id: 200}, max: {_id: MaxKey}, toShard: first}],
    [{$unionWith: {coll: "one", pipeline: [none, {$unionWith: "small"}]}}, {min: {_id: MinKey}, max: {_id: 200}, toShard: second}],
];
for (const [stage, move] of moves) {
    const cursor = testDB.one.aggregate([none, stage], {cursor: {batchSize: 5}});
    const found = Array.from({length: 12}, () => cursor.next());
    assert.commandWorked(testDB.adminCommand(Object.assign({moveRange: "sub_pipelines.small"}, move)));
    assert.eq(all, ids(found.concat(cursor.toArray())));
    noneOpen("after a move");
}

// What a getMore reads anew was asked for when its command began.
const now = {$project: {now: "$$NOW"}};
const times = open([now, {$unionWith: {coll: "small", pipeline: [{$match: {_id: 0}}, now]}}], 1);
sleep(20);
assert.eq(times.firstBatch, assert.commandWorked(next(times.id)).cursor.nextBatch);
st.stop();
