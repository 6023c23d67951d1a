/**
 * movePrimary takes the unsharded collections of a database to another shard, and leaves sharded ones where they lie.
 * It fails if documents, indexes or options are lost on the way, a sharded collection moves, or the old copy stays.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    freshDatabase,
    heldBy,
    shardByRanges,
    shardConnection,
    shardNames
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "move_primary", first);
const config = db.getSiblingDB("config");
shardByRanges(testDB.sharded, {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(testDB.sharded.insert([{x: -1}, {x: 1}]));
for (let i = 0; i < 500; i++) {
    assert.commandWorked(testDB.plain.insert({_id: i, v: i % 10}));
}
assert.commandWorked(testDB.plain.createIndex({v: 1, _id: -1}, {name: "mine", sparse: true}));
assert.commandWorked(testDB.createCollection("capped", {capped: true, size: 8192, max: 10}));
assert.commandWorked(testDB.capped.insert({_id: 1}));
assert.commandWorked(testDB.createCollection("valid", {validator: {v: {$gt: 0}}}));
assert.commandWorked(testDB.createView("view", "plain", [{$match: {v: 3}}]));
const infos = testDB.getCollectionInfos({name: {$ne: "sharded"}});
const indexes = testDB.plain.getIndexes();

assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: second}));
assert.eq(second, config.databases.findOne({_id: testDB.getName()}).primary);
assert.eq([0, 500], [heldBy(testDB.plain, first), heldBy(testDB.plain, second)]);
assert.eq(500, testDB.plain.find().itcount());
assert.eq(indexes, testDB.plain.getIndexes());
assert.eq(50, testDB.view.find().itcount());
assert.commandFailedWithCode(testDB.valid.insert({v: 0}), 121);
assert.eq(1, testDB.capped.find().itcount());
const byName = (a, b) => a.name < b.name ? -1 : 1;
const strip = (list) => list.map((i) => ({name: i.name, type: i.type, options: i.options})).sort(byName);
assert.eq(strip(infos), strip(testDB.getCollectionInfos({name: {$ne: "sharded"}})));
const left = shardConnection(db, first).getDB(testDB.getName()).getCollectionNames();
assert.eq(["sharded"], left, "the old primary keeps only what it owns ranges of");

// The sharded collection did not move.
assert.eq([first, second], chunksOf(testDB.sharded).map((c) => c.shard));
assert.eq(2, testDB.sharded.find().itcount());
assert.commandWorked(testDB.sharded.createIndex({later: 1}));

// To where it is: nothing happens.
const version = config.databases.findOne({_id: testDB.getName()}).version;
assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: second}));
assert.eq(version, config.databases.findOne({_id: testDB.getName()}).version);

// A writer that goes on while the primary moves: every acknowledged insert is there.
const stop = new CountDownLatch(1);
const writer = new Thread(function(host, name, stop) {
    const c = new Mongo(host).getDB(name).written;
    let acknowledged = [];
    for (let i = 0; stop.getCount() > 0; i++) {
        const reply = c.insert({_id: i});
        if (!reply.hasWriteError()) {
            acknowledged.push(i);
        }
    }
    return acknowledged;
}, db.getMongo().host, testDB.getName(), stop);
writer.start();
assert.soon(() => testDB.written.find().itcount() > 0);
assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: first}));
assert.commandWorked(db.adminCommand({moveprimary: testDB.getName(), to: second}));
stop.countDown();
const acknowledged = writer.returnData();
const found = new Set(testDB.written.find().toArray().map((d) => d._id));
acknowledged.forEach((id) => assert(found.has(id), `insert ${id} was acknowledged and lost`));

// Errors.
const move = (name, to) => db.adminCommand({movePrimary: name, to: to});
assert.commandFailedWithCode(move(testDB.getName(), "no such shard"), 70);
assert.commandFailedWithCode(move("move_primary_absent", first), 26);
for (const own of ["admin", "config", "local"]) {
    assert.commandFailedWithCode(move(own, first), [2, 72], own);
}
assert.commandFailedWithCode(move("", first), 73);
assert.commandFailed(db.adminCommand({movePrimary: testDB.getName()}));
assert.commandFailedWithCode(testDB.runCommand({movePrimary: testDB.getName(), to: first}), 13);
assert.commandWorked(testDB.dropDatabase());
