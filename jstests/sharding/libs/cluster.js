/**
 * What the sharding tests ask of a cluster, whether it is the shared fixture or their own: its shards, the chunks of a
 * collection, where documents lie, and which shards a plan visits. Every function takes a database or a collection
 * that is reached through a router.
 */

/** A cluster of the test's own, with the balancer stopped and a database of this name on the first of its two shards. */
export function ownCluster(name, options) {
    const st = new ShardingTest(Object.assign({shards: 2}, options));
    const [first, second] = [st.shard0.shardName, st.shard1.shardName];
    const admin = st.s.getDB("admin");
    assert.commandWorked(admin.runCommand({balancerStop: 1}));
    assert.commandWorked(admin.runCommand({enableSharding: name, primaryShard: first}));
    return {st, first, second, admin, config: st.s.getDB("config"), testDB: st.s.getDB(name)};
}

/** Names of the shards, in order. */
export function shardNames(db) {
    return db.getSiblingDB("config").shards.find().sort({_id: 1}).toArray().map((shard) => shard._id);
}

/** A direct connection to the only member of a shard. */
export function shardConnection(db, name) {
    const shard = db.getSiblingDB("config").shards.findOne({_id: name});
    assert(shard, `there is no shard ${name}`);
    return new Mongo(shard.host.split("/").pop().split(",")[0]);
}

/** A direct connection to the config server. */
export function configConnection(db) {
    const map = assert.commandWorked(db.adminCommand({getShardMap: 1})).map;
    return new Mongo(map.config.split("/").pop().split(",")[0]);
}

/** How many cursors are open on these servers together. */
export function openCursors(...servers) {
    const on = (server) => Number(assert.commandWorked(server.adminCommand({serverStatus: 1})).metrics.cursor.open.total);
    return servers.map(on).reduce((a, b) => a + b);
}

/** An empty database of this name whose primary is the given shard (the first one unless said otherwise). */
export function freshDatabase(db, name, primary) {
    const fresh = db.getSiblingDB(name);
    assert.commandWorked(fresh.dropDatabase());
    const options = {enableSharding: name, primaryShard: primary || shardNames(db)[0]};
    assert.commandWorked(db.adminCommand(options));
    return fresh;
}

/**
 * Shards the collection by `key`, splits it at `points` (full shard keys in order), and gives the i-th range to
 * `owners[i]`; there is one owner more than there are points.
 */
export function shardByRanges(coll, key, points, owners) {
    assert.eq(owners.length, points.length + 1);
    const admin = coll.getDB().getSiblingDB("admin");
    const ns = coll.getFullName();
    assert.commandWorked(admin.runCommand({shardCollection: ns, key: key}));
    for (const point of points) {
        assert.commandWorked(admin.runCommand({split: ns, middle: point}));
    }
    chunksOf(coll).forEach((chunk, i) => {
        if (chunk.shard !== owners[i]) {
            moveRange(coll, {min: chunk.min, max: chunk.max}, owners[i]);
        }
    });
    assert.eq(chunksOf(coll).map((chunk) => chunk.shard), owners);
}

/**
 * The collection `c`, empty, of a fresh database of this name whose primary is the first shard, sharded as by
 * `shardByRanges`.
 */
export function freshCollection(db, name, key, points, owners) {
    const coll = freshDatabase(db, name).c;
    shardByRanges(coll, key, points, owners);
    return coll;
}

/** Moves the range, waiting for the deletion of what is left on the donor. */
export function moveRange(coll, bounds, shard) {
    const command = {moveRange: coll.getFullName(), toShard: shard, waitForDelete: true};
    return assert.commandWorked(coll.getDB().adminCommand(Object.assign(command, bounds)));
}

/** The entry of `config.collections`. */
export function collectionEntry(coll) {
    return coll.getDB().getSiblingDB("config").collections.findOne({_id: coll.getFullName()});
}

/** The entries of `config.chunks` of a collection, in the order of the key. */
export function chunksOf(coll) {
    const entry = collectionEntry(coll);
    assert(entry, `${coll.getFullName()} is not sharded`);
    return coll.getDB().getSiblingDB("config").chunks.find({uuid: entry.uuid}).sort({min: 1}).toArray();
}

/** How many documents of the collection the shard holds, whether it owns them or not. */
export function heldBy(coll, shard) {
    const direct = shardConnection(coll.getDB(), shard);
    return direct.getDB(coll.getDB().getName()).getCollection(coll.getName()).find().itcount();
}

/** The shards that an explained command visits, in order. */
export function shardsInPlan(explained) {
    assert.commandWorked(explained);
    if (explained.shards) {
        return Object.keys(explained.shards).sort();
    }
    return explained.queryPlanner.winningPlan.shards.map((shard) => shard.shardName).sort();
}

/** Runs `act`, and says on which of the shards the counter that `read` takes from serverStatus has moved. */
export function shardsWhere(db, read, act) {
    const names = shardNames(db);
    const connections = names.map((name) => shardConnection(db, name));
    const take = () => connections.map((c) => Number(read(assert.commandWorked(c.adminCommand({serverStatus: 1})))));
    const before = take();
    act();
    const after = take();
    return names.filter((_, i) => after[i] > before[i]);
}

/**
 * Sends an admin command from a thread of its own, for commands that a test lets wait; `returnData()` of the result waits
 * for the reply and returns it.
 */
export function inBackground(db, command) {
    const thread = new Thread(function(host, given) {
        return new Mongo(host).getDB("admin").runCommand(given);
    }, db.getMongo().host, command);
    thread.start();
    return thread;
}

/** Runs `act` while the fail point holds up whoever reaches it; turns it off whatever happens. */
export function whileHung(connection, failPoint, act) {
    const point = configureFailPoint(connection, failPoint);
    try {
        act(point);
    } finally {
        point.off();
    }
}

/** Stops the balancer, which would mend what a test breaks; returns a function that puts its state back. */
export function pauseBalancer(db) {
    const was = assert.commandWorked(db.adminCommand({balancerStatus: 1})).mode;
    assert.commandWorked(db.adminCommand({balancerStop: 1}));
    return () => was === "off" || assert.commandWorked(db.adminCommand({balancerStart: 1}));
}

/** Returns when the balancer has begun and ended `n` more rounds, of which it makes some only while it may balance. */
export function afterRounds(db, n = 2) {
    const rounds = () => Number(assert.commandWorked(db.adminCommand({balancerStatus: 1})).numBalancerRounds);
    // One may be under way.
    const wanted = rounds() + n + 1;
    assert.soon(() => rounds() >= wanted, () => `the balancer has made ${rounds()} rounds`, 120 * 1000);
}

/**
 * Has the balancer's loop come round every 50 ms instead of every ten seconds, and returns when it has done so `times`
 * times, whether it may balance or not. The fail point that is returned ends that.
 */
export function quickRounds(configPrimary, times = 0) {
    const point = configureFailPoint(configPrimary, "overrideBalanceRoundInterval", {intervalMs: 50});
    if (times > 0) {
        point.wait({timesEntered: times, maxTimeMS: 120 * 1000});
    }
    return point;
}

/** The collection of this name, sharded by `{x: 1}` into one chunk for each owner, of which none has ever moved. */
export function placedChunks(coll, owners) {
    const [admin, config, ns] = [coll.getDB().getSiblingDB("admin"), coll.getDB().getSiblingDB("config"), coll.getFullName()];
    const bound = (i) => i === 0 ? MinKey : i === owners.length ? MaxKey : i * 10;
    // A zone for each shard places the first chunks, and goes.
    for (const shard of new Set(owners)) {
        assert.commandWorked(admin.runCommand({addShardToZone: shard, zone: shard}));
    }
    assert.commandWorked(config.tags.insert(
        owners.map((shard, i) => ({ns: ns, min: {x: bound(i)}, max: {x: bound(i + 1)}, tag: shard}))));
    assert.commandWorked(admin.runCommand({shardCollection: ns, key: {x: 1}}));
    assert.commandWorked(config.tags.remove({ns: ns}));
    assert.eq(owners, chunksOf(coll).map((chunk) => chunk.shard));
    return coll;
}

/**
 * Lets every shard delete what it gave away as soon as no cursor needs it, rather than after minutes; returns a function
 * that puts the delays back.
 */
export function hastenRangeDeletion(db) {
    const shards = shardNames(db).map((name) => shardConnection(db, name).getDB("admin"));
    const set = (admin, seconds) => assert.commandWorked(
        admin.runCommand({setParameter: 1, orphanCleanupDelaySecs: seconds})).was;
    const before = shards.map((admin) => set(admin, 0));
    return () => shards.forEach((admin, i) => set(admin, before[i]));
}

/** Drops the database and waits until no shard has a range of it left to delete. */
export function dropWithRemains(db) {
    assert.commandWorked(db.dropDatabase());
    const remains = () => shardNames(db).flatMap((name) => shardConnection(db, name).getDB("config").rangeDeletions
        .find({nss: {$regex: `^${db.getName()}\\.`}}).toArray());
    assert.soon(() => remains().length === 0, () => tojson(remains()));
}
