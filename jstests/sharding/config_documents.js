/**
 * Tools and drivers read the config database directly, so its documents have the fields of the real ones.
 * It fails if a field is renamed, has another type, or an index that keeps the catalog consistent is missing.
 *
 * @tags: [requires_sharding]
 */
import {
    chunksOf,
    collectionEntry,
    configConnection,
    freshDatabase,
    shardByRanges,
    shardNames
} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const config = db.getSiblingDB("config");
const testDB = freshDatabase(db, "config_documents", first);
shardByRanges(testDB.c, {x: 1}, [{x: 0}], [first, second]);

const fields = (document, required, optional) => {
    const names = Object.keys(document);
    required.forEach((name) => assert.contains(name, names, tojson(document)));
    names.forEach((name) => assert.contains(name, required.concat(optional || []), tojson(document)));
};

config.shards.find().forEach((shard) => {
    fields(shard, ["_id", "host", "state", "topologyTime"], ["replSetConfigVersion", "tags", "draining"]);
    assert(/^[^/]+\/[^/]+:\d+$/.test(shard.host), tojson(shard));
    assert.eq(1, shard.state);
    assert(shard.topologyTime instanceof Timestamp);
});

const database = config.databases.findOne({_id: testDB.getName()});
fields(database, ["_id", "primary", "version"], ["partitioned"]);
fields(database.version, ["uuid", "timestamp", "lastMod"]);
assert.eq(null, config.databases.findOne({_id: "config"}));

fields(collectionEntry(testDB.c), ["_id", "lastmodEpoch", "lastmod", "timestamp", "uuid", "key", "unique"],
       ["noBalance", "maxChunkSizeBytes"]);
assert.eq(16, collectionEntry(testDB.c).uuid.hex().replace(/-/g, "").length / 2);

chunksOf(testDB.c).forEach((chunk) => {
    fields(chunk, ["_id", "uuid", "min", "max", "shard", "lastmod", "history", "onCurrentShardSince"]);
    chunk.history.forEach((entry) => fields(entry, ["validAfter", "shard"]));
});

const version = config.getCollection("version").findOne();
fields(version, ["_id", "clusterId"], ["minCompatibleVersion", "currentVersion"]);
assert.eq(1, version._id);
assert(version.clusterId instanceof ObjectId);

// The router says that it is alive.
assert.soon(() => config.mongos.find().itcount() > 0, "no router in config.mongos", 20 * 1000);
const router = config.mongos.find().sort({ping: -1}).limit(1).next();
fields(router, ["_id", "ping", "up", "waiting", "mongoVersion"], ["created", "advisoryHostFQDNs"]);
assert(router.ping instanceof Date);
assert.eq(db.version(), router.mongoVersion);

// The catalog's indexes.
const indexes = (name) => config.getCollection(name).getIndexes().map((i) => tojsononeline([i.key, !!i.unique]));
const has = (name, key, unique) => assert.contains(tojsononeline([key, unique]), indexes(name), tojson(indexes(name)));
has("chunks", {uuid: 1, min: 1}, true);
has("chunks", {uuid: 1, shard: 1, min: 1}, true);
has("chunks", {uuid: 1, lastmod: 1}, true);
has("shards", {host: 1}, true);
has("tags", {ns: 1, min: 1}, true);
has("tags", {ns: 1, tag: 1}, false);

// Logs have a limit.
for (const name of ["changelog", "actionlog"]) {
    const info = config.getCollectionInfos({name: name})[0];
    if (info) {
        assert.eq(true, info.options.capped, tojson(info));
    }
}

// Where a collection has been.
const placed = config.placementHistory.find({nss: testDB.c.getFullName()}).sort({timestamp: -1}).limit(1).next();
assert.sameMembers([first, second], placed.shards);
assert(placed.timestamp instanceof Timestamp);

// Reading through the router and from the config server is the same.
const direct = configConnection(db).getDB("config");
assert.eq(chunksOf(testDB.c), direct.chunks.find({uuid: collectionEntry(testDB.c).uuid}).sort({min: 1}).toArray());
const status = assert.commandWorked(db.adminCommand({getShardMap: 1}));
assert.sameMembers(["config", first, second].concat(shardNames(db).slice(2)), Object.keys(status.map));
Object.entries(status.hosts).forEach(([host, name]) => assert(status.map[name].includes(host)));
Object.entries(status.connStrings).forEach(([string, name]) => assert.eq(status.map[name], string));
assert.commandWorked(testDB.dropDatabase());
