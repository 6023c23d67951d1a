/**
 * A drop that waited for a rename of the same collection finds nothing under the old name, and leaves the new one alone.
 * It fails if the drop takes what it knew before it waited for what is there, and removes the renamed collection's chunks.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    freshDatabase,
    inBackground,
    shardByRanges,
    shardConnection,
    shardNames,
    whileHung
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "drop_after_rename", first);
shardByRanges(testDB.held, {x: 1}, [{x: 0}], [first, second]);
assert.commandWorked(testDB.held.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));

const primary = shardConnection(db, first);
let renaming;
whileHung(primary, "hangDdlCoordinatorBeforeRunning_renameMetadata", (point) => {
    renaming = inBackground(db, {renameCollection: "drop_after_rename.held", to: "drop_after_rename.renamed"});
    point.wait();
    assert.commandFailedWithCode(testDB.runCommand({drop: "held", maxTimeMS: 500}), 50);
});
assert.commandWorked(renaming.returnData());

// The drop goes on without its client.
const coordinators = primary.getDB("config").getCollection("system.sharding_ddl_coordinators");
assert.commandWorked(testDB.runCommand({drop: "held"}));
assert.soon(() => coordinators.find().itcount() === 0, () => tojson(coordinators.find().toArray()));
assert.eq([first, second], chunksOf(testDB.renamed).map((chunk) => chunk.shard));
assert.eq(2, testDB.renamed.find().itcount());
assert.commandWorked(testDB.renamed.insert({_id: 3, x: 3}));
assert.commandWorked(testDB.dropDatabase());
