// What a test needs to know of the deployment it was given, and commands to all of its nodes.
import { DiscoverTopology } from "jstests/libs/discover_topology.js";

const hello = (db) => assert.commandWorked(db.getSiblingDB("admin").runCommand({ hello: 1 }));
const entryOf = (coll) => coll.getDB().getSiblingDB("config").collections.findOne({ _id: coll.getFullName() });
const shardSets = (db) => Object.values(DiscoverTopology.findConnectedNodes(db.getMongo()).shards);

export const FixtureHelpers = {
    isMongos: (db) => hello(db).msg === "isdbgrid",
    isReplSet: (db) => hello(db).setName !== undefined,
    isStandalone: (db) => !FixtureHelpers.isMongos(db) && !FixtureHelpers.isReplSet(db),
    isSharded(coll) {
        const entry = FixtureHelpers.isMongos(coll.getDB()) ? entryOf(coll) : null;
        return entry !== null && entry.unsplittable !== true;
    },
    isUnsplittable(coll) {
        const entry = FixtureHelpers.isMongos(coll.getDB()) ? entryOf(coll) : null;
        return entry !== null && entry.unsplittable === true;
    },
    isTracked: (coll) => FixtureHelpers.isMongos(coll.getDB()) && entryOf(coll) !== null,
    isShardedOrTracked: (coll) => FixtureHelpers.isTracked(coll),
    areCollectionsColocated(colls) {
        if (!FixtureHelpers.isMongos(colls[0].getDB())) return true;
        return !colls.some((coll) => FixtureHelpers.isSharded(coll)) && new Set(colls.map((coll) => coll.getDB().getName())).size === 1;
    },
    numberOfShardsForCollection(coll) {
        if (!FixtureHelpers.isMongos(coll.getDB())) return 1;
        const entry = entryOf(coll);
        return entry === null ? 1 : coll.getDB().getSiblingDB("config").chunks.distinct("shard", { uuid: entry.uuid }).length;
    },
    getPrimaries(db) {
        if (!FixtureHelpers.isMongos(db)) {
            const reply = hello(db);
            return [reply.primary && reply.primary !== reply.me ? new Mongo(reply.primary) : db.getMongo()];
        }
        return shardSets(db).map((set) => new Mongo(set.primary || set.mongod));
    },
    getSecondaries(db) {
        if (!FixtureHelpers.isMongos(db)) {
            const reply = hello(db);
            return (reply.hosts || []).filter((host) => host !== reply.primary).map((host) => new Mongo(host));
        }
        return shardSets(db).flatMap((set) => (set.nodes || []).filter((host) => host !== set.primary)).map((host) => new Mongo(host));
    },
    getAllReplicas: (db) => FixtureHelpers.getPrimaries(db).map((conn) => new ReplSetTest(conn)),
    getPrimaryForNodeHostingDatabase(db) {
        if (!FixtureHelpers.isMongos(db)) return FixtureHelpers.getPrimaries(db)[0];
        const entry = db.getSiblingDB("config").databases.findOne({ _id: db.getName() });
        const shard = db.getSiblingDB("config").shards.findOne({ _id: entry.primary });
        return FixtureHelpers.getPrimaries(new Mongo(shard.host).getDB(db.getName()))[0];
    },
    getAllNodes: (db) => DiscoverTopology.findNonConfigNodes(db.getMongo()).map((host) => new Mongo(host)),
    // Calls `func(database)` on each node that holds data and returns the results.
    mapOnEachShardNode({ db, func, primaryNodeOnly }) {
        const nodes = [...FixtureHelpers.getPrimaries(db), ...(primaryNodeOnly ? [] : FixtureHelpers.getSecondaries(db))];
        return nodes.map((conn) => func(conn.getDB(db.getName())));
    },
    runCommandOnEachPrimary: ({ db, cmdObj }) => FixtureHelpers.getPrimaries(db).map((conn) => assert.commandWorked(conn.getDB(db.getName()).runCommand(cmdObj))),
    runCommandOnAllShards: ({ db, cmdObj }) => FixtureHelpers.getPrimaries(db).map((conn) => conn.getDB(db.getName()).runCommand(cmdObj)),
    awaitReplication(db) {
        if (!FixtureHelpers.isStandalone(db)) FixtureHelpers.getAllReplicas(db).forEach((set) => set.awaitReplication());
    },
    awaitLastOpCommitted(db) {
        if (!FixtureHelpers.isStandalone(db)) FixtureHelpers.getAllReplicas(db).forEach((set) => set.awaitLastOpCommitted());
    },
    // Shards a collection of the deployment if it is a cluster; documents keep their `_id` as the key.
    shardCollectionIfPossible(coll, key = { _id: "hashed" }) {
        if (FixtureHelpers.isMongos(coll.getDB())) assert.commandWorked(coll.getDB().adminCommand({ shardCollection: coll.getFullName(), key }));
    },
};
