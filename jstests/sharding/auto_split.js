/**
 * Switched on, chunks are split as they grow, by the shard that owns them; a key that only grows has its last chunk split at
 * the greatest key and moved away. Switched off, which is the default, nothing is split.
 * It fails if the switch is not read, a chunk of twice the size is left whole, a collection's own
 * size is not read, the top chunk stays where it is, or shards go on splitting while the balancer is stopped.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, ownCluster, quickRounds} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("s", {other: {chunkSize: 1}});
const configPrimary = st.configRS.getPrimary();
const pad = "p".repeat(16 * 1024);
let next = 0;
function grow(coll, documents) {
    for (let i = 0; i < documents; i++) {
        assert.commandWorked(coll.insert({_id: next++, pad: pad}));
    }
}
const point = quickRounds(configPrimary);
// The settings are looked at each time the loop comes round.
const afterTicks = () => quickRounds(configPrimary, 3);

// Off.
assert.commandWorked(admin.runCommand({shardCollection: "s.c", key: {_id: 1}}));
grow(testDB.c, 100);
assert.eq(1, chunksOf(testDB.c).length);

// On, with the balancer stopped: split, not moved.
assert.commandWorked(config.settings.update({_id: "autosplit"}, {$set: {enabled: true}}, {upsert: true}));
afterTicks();
grow(testDB.c, 100);
assert.soon(() => chunksOf(testDB.c).length >= 4, () => tojson(chunksOf(testDB.c)));
assert(chunksOf(testDB.c).every((c) => c.shard === first), tojson(chunksOf(testDB.c)));
for (const chunk of chunksOf(testDB.c)) {
    const held = testDB.c.find({_id: {$gte: chunk.min._id, $lt: chunk.max._id}}).itcount();
    assert.lte(held, 2 * 64 + 20, tojson(chunk));
}

// A collection's own chunk size counts.
assert.commandWorked(admin.runCommand({shardCollection: "s.own", key: {_id: 1}}));
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "s.own", chunkSize: 16}));
afterTicks();
grow(testDB.own, 300);
sleep(300);
assert.eq(1, chunksOf(testDB.own).length);
assert.commandWorked(admin.runCommand({configureCollectionBalancing: "s.own", chunkSize: 1}));
afterTicks();
grow(testDB.own, 100);
assert.soon(() => chunksOf(testDB.own).length >= 4, () => tojson(chunksOf(testDB.own)));
sh.disableBalancing(testDB.own);

// With the balancer, the last chunk goes to the other shard while the key grows.
assert.commandWorked(configPrimary.adminCommand({setParameter: 1, balancerPolicy: "idealChunkCount"}));
assert.commandFailedWithCode(configPrimary.adminCommand({setParameter: 1, balancerPolicy: "chance"}), 2);
assert.commandWorked(admin.runCommand({shardCollection: "s.top", key: {_id: 1}}));
sh.disableBalancing(testDB.c);
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => {
    grow(testDB.top, 20);
    const chunks = chunksOf(testDB.top);
    return chunks.length > 2 && chunks.some((c) => c.shard === second);
}, () => tojson(chunksOf(testDB.top)), 60 * 1000);

// balancerStop ends it too, and balancerStart resumes it.
assert.commandWorked(admin.runCommand({balancerStop: 1}));
assert.eq(false, config.settings.findOne({_id: "autosplit"}).enabled);
const stopped = chunksOf(testDB.c);
grow(testDB.c, 200);
sleep(300);
assert.eq(stopped, chunksOf(testDB.c));
assert.commandWorked(admin.runCommand({balancerStart: 1}));
assert.soon(() => {
    grow(testDB.c, 20);
    return chunksOf(testDB.c).length > stopped.length;
}, () => tojson(chunksOf(testDB.c)), 60 * 1000);

// Off again.
assert.commandWorked(config.settings.update({_id: "autosplit"}, {$set: {enabled: false}}));
afterTicks();
sleep(300);
const before = chunksOf(testDB.c);
grow(testDB.c, 200);
sleep(300);
assert.eq(before, chunksOf(testDB.c));
assert.eq(next, testDB.c.find().itcount() + testDB.top.find().itcount() + testDB.own.find().itcount());
point.off();
st.stop();
