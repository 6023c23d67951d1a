// What a ShardingTest does with chunks, zones, primary shards and the balancer; and the helpers of `sh`, said to its router.

(function () {
    _defineMethods(ShardingTest.prototype, {
        chunksOf(ns) {
            const entry = this.config.collections.findOne({ _id: ns });
            return entry === null ? [] : this.config.chunks.find({ uuid: entry.uuid }).sort({ min: 1 }).toArray();
        },
        getChunksString(ns) {
            const where = ns ? this.chunksOf(ns) : this.config.chunks.find().sort({ uuid: 1, min: 1 }).toArray();
            return where.map((c) => `  ${tojsononeline(c.min)} -->> ${tojsononeline(c.max)} on : ${c.shard} ${tojsononeline(c.lastmod)}`).join("\n");
        },
        printChunks(ns) {
            print("ShardingTest " + this.getChunksString(ns));
        },
        printShardingStatus(verbose) {
            printShardingStatus(this.config, verbose);
        },
        printChangeLog() {
            this.config.changelog.find().sort({ time: 1 }).forEach((entry) => print(tojsononeline(entry)));
        },
        printCollectionInfo(ns, message) {
            print(`${message ? message + " " : ""}${ns} ${tojson(this.config.collections.findOne({ _id: ns }))}\n${this.getChunksString(ns)}`);
        },
        printNodes() {
            print(tojson({ config: this._configDB, shards: this._rs.map(({ url }) => url), mongos: this._mongos.map((s) => s.host) }));
        },
        // How many chunks of a collection each shard has.
        chunkCounts(coll, db = "test") {
            const counts = Object.fromEntries(this.config.shards.find().toArray().map((s) => [s._id, 0]));
            this.chunksOf(db + "." + coll).forEach((chunk) => (counts[chunk.shard] = (counts[chunk.shard] || 0) + 1));
            return counts;
        },
        chunkDiff(coll, db = "test") {
            const counts = Object.values(this.chunkCounts(coll, db));
            return Math.max(...counts) - Math.min(...counts);
        },

        // How many shards have chunks of a collection.
        onNumShards(coll, db = "test") {
            return Object.values(this.chunkCounts(coll, db)).filter((count) => count > 0).length;
        },
        // A shard's name, of its name or its connection string.
        normalize(shard) {
            const named = this.config.shards.findOne({ host: shard });
            return named === null ? shard : named._id;
        },
        getClusterVersionInfo() {
            return this.config.version.findOne();
        },

        // ---- commands by their names in the `sh` helper ----

        addShardTag(shard, zone) {
            return assert.commandWorked(this.s.adminCommand({ addShardToZone: this.normalize(shard), zone }));
        },
        removeShardTag(shard, zone) {
            return assert.commandWorked(this.s.adminCommand({ removeShardFromZone: this.normalize(shard), zone }));
        },
        addTagRange(ns, min, max, zone) {
            return assert.commandWorked(this.s.adminCommand({ updateZoneKeyRange: String(ns), min, max, zone }));
        },

        // Shards a collection by `key`; then, unless told false, splits it at `split` and moves the upper part away from
        // the primary shard.
        shardColl(coll, key, split, move, dbName, waitForDelete) {
            const name = coll.getFullName ? coll.getFullName() : `${dbName || "test"}.${coll}`;
            const db = name.split(".")[0];
            const point = split === false ? false : split || key;
            const moved = point === false || move === false ? false : move || point;
            if (!this.config.databases.findOne({ _id: db })) assert.commandWorked(this.s.adminCommand({ enableSharding: db }));
            assert.commandWorked(this.s.adminCommand({ shardCollection: name, key }));
            if (point === false) return;
            assert.commandWorked(this.s.adminCommand({ split: name, middle: point }));
            if (moved === false) return;
            const to = this.getOther(this.getPrimaryShardIdForDatabase(db)).shardName;
            assert.commandWorked(this.s.adminCommand({ moveChunk: name, find: moved, to, _waitForDelete: Boolean(waitForDelete) }));
        },
        ensurePrimaryShard(db, shard) {
            const reply = this.s.adminCommand({ movePrimary: db, to: shard });
            const already = !reply.ok && reply.errmsg === "it is already the primary";
            if (!already) assert.commandWorked(reply, `movePrimary of ${db} to ${shard}`);
        },

        // ---- balancer ----

        isBalancerEnabled() {
            return assert.commandWorked(this.s.adminCommand({ balancerStatus: 1 })).mode !== "off";
        },
        isAnyBalanceInFlight() {
            return assert.commandWorked(this.s.adminCommand({ balancerStatus: 1 })).inBalancerRound;
        },
        awaitBalance(coll, db = "test", timeout = 60000, interval = 50) {
            assert.soon(() => this.chunkDiff(coll, db) <= 1, () => `${db}.${coll} is not balanced: ${tojsononeline(this.chunkCounts(coll, db))}`, timeout, interval);
        },
    });

    // The other helpers of `sh`: `st.moveChunk(ns, find, to)` is `sh.moveChunk` where `db` is this cluster's.
    for (const name of sh._names()) {
        if (name in ShardingTest.prototype) continue;
        _defineMethods(ShardingTest.prototype, {
            [name](...given) {
                return sh._through(this.s, name, given);
            },
        });
    }
})();
