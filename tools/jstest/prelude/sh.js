// `sh`: what a person or a test says to the sharded cluster that `db` is connected to, and `printShardingStatus`.
//
// Helpers that ShardingTest needs for a router of its own take the connection: their names end in "On".

(function () {
    const ROUND_TIMEOUT_MS = 60 * 1000;
    const POLL_MS = 20;

    // The router of the ShardingTest on whose behalf a helper runs; otherwise that of `db`.
    let onBehalf;
    const router = () => onBehalf || db.getMongo();
    const admin = (conn, command) => conn.getDB("admin").runCommand(command);
    const configOf = (conn) => conn.getDB("config");

    // The reply of a command to a router; another server is refused, unless `skipCheck`.
    function adminCommand(command, skipCheck) {
        if (!skipCheck) checkRouter();
        return admin(router(), command);
    }
    function checkRouter() {
        const { msg } = router().getDB("admin").runCommand({ hello: 1 });
        if (msg !== "isdbgrid") throw new Error("not connected to a mongos");
    }
    function fullName(ns) {
        assert(String(ns).includes("."), "needs to be a fully qualified namespace: " + ns);
        return String(ns);
    }
    const works = (reply) => assert.commandWorked(reply);
    const majority = { w: "majority", wtimeout: 60000 };

    // A collection brings its own connection, so that these work where there is no `db`.
    function setBalancing(coll, given) {
        const conn = typeof coll.getMongo === "function" ? coll.getMongo() : router();
        return configOf(conn).collections.update({ _id: fullName(coll) }, given, { writeConcern: majority });
    }
    const configDB = (given) => given || configOf(router());

    const sh = function () {
        return "try sh.help()";
    };

    // ---- shards, databases, collections ----

    Object.assign(sh, {
        _adminCommand: adminCommand,
        _checkMongos: checkRouter,
        _checkFullName: fullName,
        _getConfigDB: () => configOf(router()),
        _through(conn, name, given) {
            const before = onBehalf;
            onBehalf = conn;
            try {
                return sh[name](...given);
            } finally {
                onBehalf = before;
            }
        },
        // The helpers that a person calls.
        _names: () => Object.keys(sh).filter((name) => !/^_|On$/.test(name) && !["help", "status"].includes(name)),
        help() {
            print("sh.addShard(host)  sh.enableSharding(db[, primary])  sh.shardCollection(ns, key[, unique[, options]])  sh.status()");
            print("sh.splitAt(ns, middle)  sh.splitFind(ns, find)  sh.moveChunk(ns, find, to)  sh.moveRange(ns, to, min, max)");
            print("sh.startBalancer()  sh.stopBalancer()  sh.getBalancerState()  sh.isBalancerRunning()  sh.balancerCollectionStatus(ns)");
            print("sh.addShardToZone(shard, zone)  sh.updateZoneKeyRange(ns, min, max, zone)  sh.removeRangeFromZone(ns, min, max)");
        },
        status: (verbose, given) => printShardingStatus(configDB(given), verbose),
        addShard: (url) => adminCommand({ addShard: url }, true),
        enableSharding(name, primary) {
            assert(name, "need a valid dbname");
            return works(adminCommand({ enableSharding: name, ...(primary ? { primaryShard: primary } : {}) }));
        },
        shardCollection(ns, key, unique, options) {
            const command = { shardCollection: fullName(ns), key };
            if (unique !== undefined && typeof unique !== "boolean") throw new Error("unique must be a boolean");
            if (unique) command.unique = true;
            if (options !== undefined && typeof options !== "object") throw new Error("options must be an object");
            return works(adminCommand({ ...command, ...(options || {}) }));
        },
        reshardCollection: (ns, key, unique, options) =>
            works(adminCommand({ reshardCollection: fullName(ns), key, ...(unique ? { unique } : {}), ...(options || {}) })),
        abortReshardCollection: (ns) => works(adminCommand({ abortReshardCollection: fullName(ns) })),
        commitReshardCollection: (ns) => works(adminCommand({ commitReshardCollection: fullName(ns) })),
        moveCollection: (ns, toShard) => works(adminCommand({ moveCollection: fullName(ns), toShard })),
        abortMoveCollection: (ns) => works(adminCommand({ abortMoveCollection: fullName(ns) })),
        unshardCollection: (ns, toShard) => works(adminCommand({ unshardCollection: fullName(ns), ...(toShard ? { toShard } : {}) })),
        abortUnshardCollection: (ns) => works(adminCommand({ abortUnshardCollection: fullName(ns) })),
        listShards: () => works(adminCommand({ listShards: 1 })).shards,
        getShardedDataDistribution: () => router().getDB("admin").aggregate([{ $shardedDataDistribution: {} }]),
        checkMetadataConsistency: () => router().getDB("admin").checkMetadataConsistency(),
        // Shards a collection and spreads what it has over the shards at once, without the balancer.
        shardAndDistributeCollection(ns, key, unique, options) {
            sh.shardCollection(ns, key, unique, options);
            return sh.reshardCollection(ns, key, unique, { ...options, forceRedistribution: true });
        },
        isConfigShardEnabled: () => configOf(router()).shards.findOne({ _id: "config" }) !== null,
    });

    // ---- chunks ----

    Object.assign(sh, {
        splitFind: (ns, find) => works(adminCommand({ split: fullName(ns), find })),
        splitAt: (ns, middle) => works(adminCommand({ split: fullName(ns), middle })),
        moveChunk: (ns, find, to) => works(adminCommand({ moveChunk: fullName(ns), find, to })),
        moveRange(ns, toShard, min, max) {
            return works(adminCommand({
                moveRange: fullName(ns), toShard, ...(min ? { min } : {}), ...(max ? { max } : {}),
            }));
        },
        mergeChunks: (ns, min, max) => works(adminCommand({ mergeChunks: fullName(ns), bounds: [min, max] })),
        getRecentMigrations(given) {
            const since = new Date(Date.now() - 24 * 60 * 60 * 1000);
            const match = { time: { $gt: since } };
            const commits = { $match: { ...match, what: "moveChunk.from", "details.errmsg": { $exists: false }, "details.note": "success" } };
            const failures = { $match: { ...match, what: "moveChunk.from", $or: [{ "details.errmsg": { $exists: true } }, { "details.note": { $ne: "success" } }] } };
            const log = configDB(given).changelog;
            return [
                ...log.aggregate([commits, { $group: { _id: { msg: "$details.errmsg" }, count: { $sum: 1 } } },
                    { $project: { _id: { $ifNull: ["$_id.msg", "Success"] }, count: "$count" } }]).toArray(),
                ...log.aggregate([failures, { $group: { _id: { msg: "$details.errmsg", from: "$details.from", to: "$details.to" }, count: { $sum: 1 } } },
                    { $project: { _id: { $ifNull: ["$_id.msg", "aborted"] }, from: "$_id.from", to: "$_id.to", count: "$count" } }]).toArray(),
            ];
        },
        getActiveMigrations: (given) => configDB(given).locks.find({ state: 2 }).toArray(),
        getRecentFailedRounds(given) {
            const rounds = configDB(given).actionlog.find({ what: "balancer.round" }).sort({ time: -1 }).limit(5).toArray();
            const failed = rounds.filter((round) => round.details.errorOccured || round.details.errorOccurred);
            return failed.length === 0 ? { count: 0, lastErr: "", lastTime: " " }
                : { count: failed.length, lastErr: failed[0].details.errmsg, lastTime: failed[0].time };
        },
        _lastMigration(ns) {
            const log = configOf(router()).changelog;
            return log.find({ ns: String(ns), what: /^moveChunk/ }).sort({ time: -1 }).limit(1).toArray()[0] ?? null;
        },
        _dataFormat(bytes) {
            const units = ["B", "KiB", "MiB", "GiB"];
            let [size, unit] = [Number(bytes), 0];
            for (; size >= 1024 && unit + 1 < units.length; unit++) size /= 1024;
            return unit < 2 ? Math.floor(size) + units[unit] : Math.floor(size * 100) / 100 + units[unit];
        },
    });

    // ---- balancer ----

    const statusOn = (conn) => assert.commandWorked(admin(conn, { balancerStatus: 1 }));

    Object.assign(sh, {
        startBalancerOn: (conn, timeout = ROUND_TIMEOUT_MS) => admin(conn, { balancerStart: 1, maxTimeMS: timeout }),
        stopBalancerOn: (conn, timeout = ROUND_TIMEOUT_MS) => admin(conn, { balancerStop: 1, maxTimeMS: timeout }),
        // Waits until a round has ended that had not ended when this was called.
        awaitBalancerRoundOn(conn, timeout = ROUND_TIMEOUT_MS, interval = POLL_MS) {
            const begun = Number(statusOn(conn).numBalancerRounds);
            assert.soon(() => Number(statusOn(conn).numBalancerRounds) > begun,
                () => `no round of the balancer ended: ${tojson(statusOn(conn))}`, timeout, interval);
        },
        startBalancer: (timeout, interval) => works(sh.startBalancerOn(router(), timeout, interval)),
        stopBalancer: (timeout, interval) => works(sh.stopBalancerOn(router(), timeout, interval)),
        setBalancerState: (enabled) => (enabled ? sh.startBalancer() : sh.stopBalancer()),
        // Whether the balancer's settings let it run.
        getBalancerState(given, settings) {
            const entry = settings === undefined ? configDB(given).settings.findOne({ _id: "balancer" }) : settings;
            return entry === null ? true : !entry.stopped;
        },
        isBalancerRunning: () => works(adminCommand({ balancerStatus: 1 })).inBalancerRound,
        getBalancerHost() {
            return undefined;
        },
        getBalancerWindow(given) {
            const entry = configDB(given).settings.findOne({ _id: "balancer" });
            return entry === null ? null : entry.activeWindow ?? null;
        },
        getBalancerLockDetails: () => null,
        waitForBalancer(on = true, timeout = ROUND_TIMEOUT_MS, interval = POLL_MS) {
            assert.soon(() => (statusOn(router()).mode !== "off") === on, `the balancer is not ${on ? "on" : "off"}`, timeout, interval);
        },
        waitForBalancerOff(timeout = ROUND_TIMEOUT_MS, interval = POLL_MS) {
            assert.soon(() => !statusOn(router()).inBalancerRound, "the balancer is still in a round", timeout, interval);
        },
        awaitBalancerRound: (timeout, interval) => sh.awaitBalancerRoundOn(router(), timeout, interval),
        balancerCollectionStatus: (ns) => works(adminCommand({ balancerCollectionStatus: fullName(ns) })),
        configureCollectionBalancing: (ns, given = {}) => works(adminCommand({ configureCollectionBalancing: fullName(ns), ...given })),
        disableBalancing: (coll) => setBalancing(coll, { $set: { noBalance: true } }),
        enableBalancing: (coll) => setBalancing(coll, { $set: { noBalance: false } }),
        disableMigrations: (ns) => works(adminCommand({ setAllowMigrations: fullName(ns), allowMigrations: false })),
        enableMigrations: (ns) => works(adminCommand({ setAllowMigrations: fullName(ns), allowMigrations: true })),
        enableAutoMerger: (ns) => automerge(ns, true),
        disableAutoMerger: (ns) => automerge(ns, false),
        startAutoMerger: () => setAutomerge(true),
        stopAutoMerger: () => setAutomerge(false),
        shouldAutoMerge(given) {
            const entry = configDB(given).settings.findOne({ _id: "automerge" });
            return entry === null ? true : entry.enabled;
        },
        // Servers have not split chunks by themselves since 6.0.3; tests still say these.
        enableAutoSplit() {},
        disableAutoSplit() {},
        getShouldAutoSplit: () => false,
    });
    function automerge(ns, enabled) {
        return works(adminCommand({ configureCollectionBalancing: fullName(ns), enableAutoMerger: enabled }));
    }
    function setAutomerge(enabled) {
        return configOf(router()).settings.update({ _id: "automerge" }, { $set: { enabled } }, { upsert: true, writeConcern: majority });
    }

    // ---- zones ----

    Object.assign(sh, {
        addShardToZone: (shard, zone) => works(adminCommand({ addShardToZone: shard, zone })),
        removeShardFromZone: (shard, zone) => works(adminCommand({ removeShardFromZone: shard, zone })),
        updateZoneKeyRange: (ns, min, max, zone) => works(adminCommand({ updateZoneKeyRange: fullName(ns), min, max, zone })),
        removeRangeFromZone: (ns, min, max) => works(adminCommand({ updateZoneKeyRange: fullName(ns), min, max, zone: null })),
        // Bounds that are not documents of the key are refused here already, as the real helpers do.
        addTagRange(ns, min, max, zone) {
            if (bsonWoCompare(min, max) === 0) throw new Error("min and max cannot be the same");
            return sh.updateZoneKeyRange(ns, min, max, zone);
        },
        removeTagRange: (ns, min, max, zone) => sh.removeRangeFromZone(ns, min, max, zone),
        addShardTag: (shard, zone) => sh.addShardToZone(shard, zone),
        removeShardTag: (shard, zone) => sh.removeShardFromZone(shard, zone),
    });

    // ---- status ----

    const MANY_CHUNKS = 20;

    // Prints the cluster as its catalog has it. Collections of more than 20 chunks show them only when `verbose`.
    function printShardingStatus(given, verbose) {
        const config = configDB(given);
        const version = config.getCollection("version").findOne();
        if (version === null) {
            print("printShardingStatus: this db does not have sharding enabled. be sure you are connecting to a mongos from the shell and not to a mongod.");
            return;
        }
        const lines = ["--- Sharding Status --- ", `  sharding version: ${tojson(version)}`, "  shards:"];
        for (const shard of config.shards.find().sort({ _id: 1 }).toArray()) lines.push("        " + tojsononeline(shard));
        lines.push(...routerLines(config, verbose), ...balancerLines(config), "  databases:");
        for (const database of databasesOf(config)) {
            lines.push("        " + tojsononeline(database));
            for (const entry of collectionsOf(config, database._id)) lines.push(...collectionLines(config, entry, verbose));
        }
        print(lines.join("\n") + "\n");
    }
    function routerLines(config, verbose) {
        const routers = config.mongos.find().sort({ ping: -1 }).toArray();
        const newest = routers.length > 0 ? routers[0].ping.getTime() : 0;
        const active = routers.filter((one) => one.ping.getTime() > newest - 60000);
        const shown = active.length > 0 ? active : routers;
        const heading = active.length > 0 ? "  active mongoses:" : "  most recently active mongoses:";
        if (shown.length === 0) return [heading, "        none"];
        if (verbose) return [heading, ...shown.map((one) => "        " + tojsononeline(one))];
        const counts = {};
        shown.forEach((one) => (counts[one.mongoVersion] = (counts[one.mongoVersion] || 0) + 1));
        return [heading, ...Object.entries(counts).map(([name, n]) => `        ${tojson(name)} : ${n}`)];
    }
    function balancerLines(config) {
        const yesNo = (is) => (is ? "yes" : "no");
        const status = admin(config.getMongo(), { balancerStatus: 1 });
        const lines = ["  balancer:", `        Currently enabled:  ${yesNo(sh.getBalancerState(config))}`];
        if (status.ok) lines.push(`        Currently running:  ${yesNo(status.inBalancerRound)}`);
        const window = sh.getBalancerWindow(config);
        if (window) lines.push(`        Balancer active window is set between ${window.start} and ${window.stop} server local time`);
        const failed = sh.getRecentFailedRounds(config);
        lines.push(`        Failed balancer rounds in last 5 attempts:  ${failed.count}`);
        if (failed.count > 0) lines.push(`        Last reported error:  ${failed.lastErr}`, `        Time of Reported error:  ${failed.lastTime}`);
        const migrations = sh.getRecentMigrations(config);
        lines.push("        Migration Results for the last 24 hours: ");
        if (migrations.length === 0) lines.push("                No recent migrations");
        for (const { _id, count, from, to } of migrations) {
            lines.push(_id === "Success" ? `                ${count} : Success` : `                ${count} : Failed with error '${_id}', from ${from} to ${to}`);
        }
        return lines;
    }
    function databasesOf(config) {
        const known = config.databases.find().sort({ _id: 1 }).toArray();
        return [{ _id: "config", primary: "config", partitioned: true }, ...known].sort((a, b) => (a._id < b._id ? -1 : 1));
    }
    function collectionsOf(config, database) {
        const prefix = new RegExp("^" + database.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "\\.");
        return config.collections.find({ _id: prefix, unsplittable: { $ne: true } }).sort({ _id: 1 }).toArray();
    }
    function collectionLines(config, entry, verbose) {
        const pad = " ".repeat(16);
        const deep = pad + "        ";
        const chunks = config.chunks.find(entry.timestamp ? { uuid: entry.uuid } : { ns: entry._id }).sort({ min: 1 }).toArray();
        const counts = {};
        chunks.forEach((chunk) => (counts[chunk.shard] = (counts[chunk.shard] || 0) + 1));
        const lines = [pad + entry._id, deep + `shard key: ${tojsononeline(entry.key)}`, deep + `unique: ${Boolean(entry.unique)}`,
            deep + `balancing: ${!entry.noBalance}`, deep + "chunks:"];
        for (const id of Object.keys(counts).sort()) lines.push(`${deep}        ${id}\t${counts[id]}`);
        if (chunks.length > MANY_CHUNKS && !verbose) lines.push(deep + "too many chunks to print, use verbose if you want to force print");
        else {
            for (const { min, max, shard, lastmod, jumbo } of chunks) {
                lines.push(`${deep}${tojsononeline(min)} -->> ${tojsononeline(max)} on : ${shard} ${tojsononeline(lastmod)} ${jumbo ? "jumbo " : ""}`);
            }
        }
        for (const { tag, min, max } of config.tags.find({ ns: entry._id }).sort({ min: 1 }).toArray()) {
            lines.push(`${deep} tag: ${tag}  ${tojsononeline(min)} -->> ${tojsononeline(max)}`);
        }
        return lines;
    }

    // Prints each chunk with the size of its documents.
    function printShardingSizes(given) {
        const config = configDB(given);
        const lines = ["--- Sharding Sizes --- "];
        for (const entry of config.collections.find({ unsplittable: { $ne: true } }).sort({ _id: 1 }).toArray()) {
            lines.push("  " + entry._id + " chunks:");
            for (const { min, max, shard } of config.chunks.find({ uuid: entry.uuid }).sort({ min: 1 }).toArray()) {
                const size = admin(config.getMongo(), { dataSize: entry._id, keyPattern: entry.key, min, max });
                delete size.millis;
                delete size.ok;
                lines.push(`      ${tojsononeline(min)} -->> ${tojsononeline(max)} on : ${shard} ${tojsononeline(size)}`);
            }
        }
        print(lines.join("\n"));
    }

    Object.assign(globalThis, { sh, printShardingStatus, printShardingSizes });
})();
