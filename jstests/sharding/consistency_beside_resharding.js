/**
 * A check of the metadata does not wait for a resharding, which may take hours: it leaves out the collection that is being resharded.
 * It fails if the check waits until the resharding ends, accuses what the resharding makes, or overlooks a fault elsewhere.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, inBackground, shardConnection, shardNames, whileHung} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "consistency_beside_resharding", {x: 1}, [{x: 0}], [first, second]);
const [testDB, admin] = [coll.getDB(), db.getSiblingDB("admin")];
assert.commandWorked(coll.insert([{_id: 1, x: -1, y: 1}, {_id: 2, x: 1, y: -1}]));
const found = (on) => {
    const reply = assert.commandWorked(on.runCommand({checkMetadataConsistency: 1, maxTimeMS: 20000}));
    return new DBCommandCursor(on, reply).toArray().filter((f) => /^consistency_beside_resharding/.test(f.details.namespace));
};
let resharding;
whileHung(shardConnection(db, first), "reshardingPauseCoordinatorInCloning", (point) => {
    resharding = inBackground(db, {reshardCollection: coll.getFullName(), key: {y: 1}, numInitialChunks: 1});
    point.wait();
    assert.eq([], found(testDB));
    assert.eq([], found(admin));
    const stray = shardConnection(db, second).getDB(testDB.getName()).stray;
    assert.commandWorked(stray.insert({_id: 1}));
    assert.eq(["MisplacedCollection"], found(testDB).map((f) => f.type));
    assert(stray.drop());
    // What concerns the whole database waits still.
    assert.commandFailedWithCode(testDB.runCommand({dropDatabase: 1, maxTimeMS: 500}), ErrorCodes.MaxTimeMSExpired);
});
assert.commandWorked(resharding.returnData());
assert.eq([], found(testDB));
assert.eq(2, coll.find().itcount());
assert.commandWorked(testDB.dropDatabase());
