/**
 * Clients create, shard, rename and drop the same collections at the same time; each command is done whole or not at all.
 * It fails if two coordinators work on one collection at once, and shards and catalog disagree in the end.
 *
 * @tags: [requires_sharding]
 */
import {inBackground, shardConnection, shardNames, whileHung} from "jstests/sharding/libs/cluster.js";

const name = "concurrent_ddl";
const testDB = db.getSiblingDB(name);
assert.commandWorked(testDB.dropDatabase());
assert.commandWorked(db.adminCommand({enableSharding: name}));

// While one command works on a collection, each of another kind on it waits, longer than its client does; an equal one waits for
// the outcome of the first, and one of the same kind that asks for something else is refused.
const primary = shardConnection(db, db.getSiblingDB("config").databases.findOne({_id: name}).primary);
const coordinators = primary.getDB("config").getCollection("system.sharding_ddl_coordinators");
assert.commandWorked(db.adminCommand({shardCollection: `${name}.held`, key: {x: 1}}));
assert.commandWorked(testDB.held.insert([{_id: 1, x: 1}, {_id: 2, x: 2}]));
let renaming;
whileHung(primary, "hangDdlCoordinatorBeforeRunning_renameMetadata", (point) => {
    renaming = inBackground(db, {renameCollection: `${name}.held`, to: `${name}.renamed`});
    point.wait();
    for (const [on, command, code] of [
             [testDB, {drop: "renamed"}, 50],
             [testDB, {collMod: "held", validationLevel: "off"}, 50],
             [db.getSiblingDB("admin"), {renameCollection: `${name}.held`, to: `${name}.renamed`}, 50],
             [db.getSiblingDB("admin"), {renameCollection: `${name}.held`, to: `${name}.other`}, 117],
             [db.getSiblingDB("admin"), {shardCollection: `${name}.renamed`, key: {y: 1}}, 50],
         ]) {
        assert.commandFailedWithCode(on.runCommand(Object.assign(command, {maxTimeMS: 300})), code, () => tojson(command));
        assert.eq(1, coordinators.find().itcount(), () => tojson({command, coordinators: coordinators.find().toArray()}));
    }
});
assert.commandWorked(renaming.returnData());
assert.soon(() => coordinators.find().itcount() === 0, () => tojson(coordinators.find().toArray()));
assert.eq(2, testDB.renamed.find().itcount());
assert.eq(null, db.getSiblingDB("config").collections.findOne({_id: `${name}.other`}));
assert(testDB.renamed.drop());

const worker = function(host, name, seed) {
    const conn = new Mongo(host);
    const testDB = conn.getDB(name);
    // What may come of it when another client is faster: not there, there already, in use, sharded otherwise, no database, no longer wanted.
    const expected = [23, 26, 48, 72, 117, 207, 215, 276, 13388, 249, 225, 112, 46, 24, 11000, 10107];
    const unexpected = [];
    const run = (on, command) => {
        const reply = on.runCommand(command);
        const code = reply.ok ? (reply.writeErrors || [{code: 0}])[0].code : reply.code;
        if (code !== 0 && !expected.includes(code)) {
            unexpected.push({command, reply});
        }
    };
    for (let i = 0; i < 25; i++) {
        const c = `c${(i * 7 + seed) % 3}`;
        const other = `c${(i * 5 + seed + 1) % 3}`;
        switch ((i + seed) % 6) {
            case 0:
                run(conn.getDB("admin"), {shardCollection: `${name}.${c}`, key: {_id: "hashed"}});
                break;
            case 1:
                run(testDB, {insert: c, documents: [{i: i}, {i: -i}, {i: i + 0.5}]});
                break;
            case 2:
                run(testDB, {drop: c});
                break;
            case 3:
                run(testDB, {createIndexes: c, indexes: [{key: {i: 1}, name: "i_1"}]});
                break;
            case 4:
                if (c !== other) {
                    run(conn.getDB("admin"), {renameCollection: `${name}.${c}`, to: `${name}.${other}`, dropTarget: true});
                }
                break;
            default:
                run(testDB, {count: c});
        }
    }
    return unexpected;
};
const threads = [0, 1, 2].map((seed) => new Thread(worker, db.getMongo().host, name, seed));
threads.forEach((t) => t.start());
threads.forEach((t) => assert.eq([], t.returnData()));

// Catalog and shards agree.
assert.eq([], testDB.runCommand({checkMetadataConsistency: 1, checkIndexes: true}).cursor.firstBatch);
const config = db.getSiblingDB("config");
for (const entry of config.collections.find({_id: {$regex: `^${name}\\.`}}).toArray()) {
    const owners = config.chunks.distinct("shard", {uuid: entry.uuid});
    for (const owner of owners) {
        const coll = entry._id.substring(name.length + 1);
        const info = shardConnection(db, owner).getDB(name).getCollectionInfos({name: coll})[0];
        assert.eq(entry.uuid, info.info.uuid, `${coll} on ${owner}`);
    }
}
for (const coll of ["c0", "c1", "c2"]) {
    assert.commandWorked(testDB[coll].insert({last: true}));
    assert.eq(1, testDB[coll].find({last: true}).itcount(), coll);
}
for (const shard of shardNames(db)) {
    const left = shardConnection(db, shard).getDB("config").getCollection("system.sharding_ddl_coordinators");
    assert.soon(() => left.find().itcount() === 0, () => tojson(left.find().toArray()));
}
assert.commandWorked(testDB.dropDatabase());
