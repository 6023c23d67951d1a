// What must hold in every cluster when a test is over, whatever the test did: the catalog of the config server, what the
// shards hold and what they believe about it agree.
//
// A view of the cluster is read once (`ClusterView`); each check compares a part of it with the shards, over connections
// straight to them, and collects what it found wrong, so that one failure shows all of it.

(function () {
    // Tests may put a Map of their own in its place.
    const Map = globalThis.Map;
    const RANGE_DELETIONS_TIMEOUT_MS = 5 * 60 * 1000;

    const sameBson = (a, b) => bsonWoCompare({ v: a }, { v: b }) === 0;
    const namespace = (ns) => ({ db: ns.split(".")[0], coll: ns.slice(ns.indexOf(".") + 1) });
    const timeOf = (ts) => [Number(ts.t ?? ts.getTime()), Number(ts.i ?? ts.getInc())];
    const isOlder = (a, b) => {
        const [[at, ai], [bt, bi]] = [timeOf(a), timeOf(b)];
        return at < bt || (at === bt && ai < bi);
    };
    const edge = (key, value) => Object.fromEntries(Object.keys(key).map((field) => [field, value]));

    class ClusterView {
        constructor(mongos) {
            this.mongos = mongos;
            const config = mongos.getDB("config");
            this.shards = new Map(config.shards.find().toArray().map((s) => [s._id, { id: s._id, host: s.host }]));
            this.databases = new Map(config.databases.find().toArray().map((d) => [d._id, d]));
            this.collections = config.collections.find().toArray();
            for (const entry of this.collections) {
                entry.chunks = config.chunks.find({ uuid: entry.uuid }).sort({ min: 1 }).toArray();
            }
        }
        connection(id) {
            const shard = this.shards.get(id);
            if (shard === undefined) return undefined;
            shard.conn = shard.conn || new Mongo(shard.host);
            return shard.conn;
        }
        get shardIds() {
            return [...this.shards.keys()];
        }
        get sharded() {
            return this.collections.filter((entry) => entry.unsplittable !== true);
        }
        owners(entry) {
            return [...new Set(entry.chunks.map((chunk) => chunk.shard))];
        }
        // The ranges of a collection a shard owns (or does not own), neighbours joined.
        ranges(entry, id, owned) {
            return join(entry.chunks.filter((chunk) => (chunk.shard === id) === owned));
        }
    }

    function join(chunks) {
        const ranges = [];
        for (const { min, max } of chunks) {
            const last = ranges[ranges.length - 1];
            if (last !== undefined && sameBson(last.max, min)) last.max = max;
            else ranges.push({ min, max });
        }
        return ranges;
    }

    function localInfo(conn, ns) {
        const { db, coll } = namespace(ns);
        return conn.getDB(db).getCollectionInfos({ name: coll })[0];
    }

    // ---- the checks: each returns what it found wrong, as lines ----

    function* metadata(view) {
        const reply = assert.commandWorked(view.mongos.getDB("admin").runCommand({ checkMetadataConsistency: 1 }));
        for (const found of new DBCommandCursor(view.mongos.getDB("admin"), reply).toArray()) yield tojsononeline(found);
    }

    // A collection has the catalog's UUID on its database's primary shard and wherever it has chunks.
    function* uuids(view) {
        for (const entry of view.collections) {
            const primary = view.databases.get(namespace(entry._id).db)?.primary;
            const where = new Set(view.owners(entry));
            for (const id of new Set([...where, ...(primary ? [primary] : [])])) {
                const info = view.shards.has(id) ? localInfo(view.connection(id), entry._id) : undefined;
                if (info === undefined) {
                    if (where.has(id)) yield `${entry._id} has chunks on ${id}, which does not have the collection`;
                } else if (!sameBson(info.info.uuid, entry.uuid)) {
                    yield `${entry._id} is ${tojson(info.info.uuid)} on ${id} and ${tojson(entry.uuid)} in the catalog`;
                }
            }
        }
    }

    function indexesOf(conn, ns) {
        const { db, coll } = namespace(ns);
        const specs = conn.getDB(db).getCollection(coll).getIndexes();
        return specs.sort((a, b) => (a.name < b.name ? -1 : 1));
    }
    // Shards that own chunks of a collection have the same indexes on it.
    function* indexes(view) {
        for (const entry of view.sharded) {
            const [first, ...others] = view.owners(entry);
            if (others.length === 0) continue;
            const wanted = indexesOf(view.connection(first), entry._id);
            for (const id of others) {
                const found = indexesOf(view.connection(id), entry._id);
                const differ = wanted.length !== found.length || found.some((spec, i) => bsonUnorderedFieldsCompare(spec, wanted[i]) !== 0);
                if (differ) yield `${entry._id}: ${first} has ${tojsononeline(wanted)}, ${id} has ${tojsononeline(found)}`;
            }
        }
    }

    // Bounds for an index that has the shard key as prefix: its further fields are open below.
    function extended(bound, pattern) {
        return Object.fromEntries(Object.keys(pattern).map((field) => [field, field in bound ? bound[field] : MinKey]));
    }
    function shardKeyIndex(coll, key) {
        const fields = Object.entries(key);
        return coll.getIndexes().find((spec) => {
            const own = Object.entries(spec.key);
            return !spec.sparse && !spec.partialFilterExpression &&
                fields.every(([name, order], i) => own[i] !== undefined && own[i][0] === name && own[i][1] === order);
        });
    }
    function awaitRangeDeletions(view, timeout) {
        for (const id of view.shardIds) {
            const tasks = view.connection(id).getDB("config").getCollection("rangeDeletions");
            assert.soon(() => tasks.find().itcount() === 0,
                () => `range deletions are still waiting on ${id}: ${tojson(tasks.find().toArray())}`, timeout, 20);
        }
    }
    // Once all range deletions are done, no shard holds a document of a range that it does not own.
    function* orphans(view, { timeout = RANGE_DELETIONS_TIMEOUT_MS } = {}) {
        awaitRangeDeletions(view, timeout);
        for (const entry of view.sharded) {
            for (const id of view.shardIds) {
                const conn = view.connection(id);
                if (localInfo(conn, entry._id) === undefined) continue;
                const { db, coll } = namespace(entry._id);
                yield* orphansOn(conn.getDB(db).getCollection(coll), entry, id, view);
            }
        }
    }
    function* orphansOn(coll, entry, id, view) {
        const foreign = view.ranges(entry, id, false);
        if (foreign.length === 0) return;
        const index = shardKeyIndex(coll, entry.key);
        if (index === undefined) {
            if (coll.find().limit(1).itcount() > 0 && view.owners(entry).includes(id)) {
                yield `${entry._id}: no index for the shard key on ${id}`;
            }
            return;
        }
        for (const { min, max } of foreign) {
            const [low, high] = [extended(min, index.key), extended(max, index.key)];
            const found = coll.find().hint(index.key).min(low).max(high).limit(1).toArray();
            if (found.length > 0) yield `${entry._id}: ${id} holds ${tojsononeline(found[0])} of ${tojsononeline({ min, max })}, which it does not own`;
        }
    }

    // Chunks cover the whole key space once, name shards that exist, and no two have one version.
    function* routing(view) {
        for (const entry of view.collections) {
            const say = (text) => `${entry._id}: ${text}`;
            const { chunks } = entry;
            if (chunks.length === 0) {
                yield say("no chunks");
                continue;
            }
            if (!sameBson(chunks[0].min, edge(entry.key, MinKey))) yield say(`begins at ${tojsononeline(chunks[0].min)}`);
            if (!sameBson(chunks[chunks.length - 1].max, edge(entry.key, MaxKey))) yield say(`ends at ${tojsononeline(chunks[chunks.length - 1].max)}`);
            for (let i = 0; i + 1 < chunks.length; i++) {
                if (!sameBson(chunks[i].max, chunks[i + 1].min)) {
                    yield say(`between ${tojsononeline(chunks[i].max)} and ${tojsononeline(chunks[i + 1].min)} is a gap or an overlap`);
                }
            }
            const versions = new Set();
            for (const chunk of chunks) {
                const version = timeOf(chunk.lastmod).join("|");
                if (versions.has(version)) yield say(`two chunks have version ${version}`);
                versions.add(version);
                if (!view.shards.has(chunk.shard)) yield say(`a chunk on ${chunk.shard}, which is no shard`);
                const newest = (chunk.history || [])[0];
                if (newest !== undefined && newest.shard !== chunk.shard) yield say(`history of ${tojsononeline(chunk)}`);
            }
            if (entry.unsplittable && chunks.length > 1) yield say(`${chunks.length} chunks of an unsharded collection`);
        }
        for (const [name, { primary }] of view.databases) {
            if (!view.shards.has(primary) && primary !== "config") yield `${name}: its primary ${primary} is no shard`;
        }
    }

    // What a shard believes to own is what the catalog says, unless it knows an older version.
    function* filtering(view) {
        for (const entry of view.sharded) {
            for (const id of view.shardIds) {
                const reply = view.connection(id).getDB("admin").runCommand({ getShardVersion: entry._id, fullMetadata: true });
                const { metadata } = assert.commandWorked(reply);
                if (metadata === undefined || metadata.shardVersion === undefined) continue;
                const mine = entry.chunks.filter((chunk) => chunk.shard === id).map((chunk) => chunk.lastmod);
                yield* beliefs(entry, id, metadata, mine, view.ranges(entry, id, true));
            }
        }
    }
    function* beliefs(entry, id, metadata, versions, wanted) {
        const say = (text) => `${entry._id} on ${id}: ${text}`;
        if (!sameBson(metadata.collVersionTimestamp, entry.timestamp)) {
            if (isOlder(entry.timestamp, metadata.collVersionTimestamp)) yield say("a generation newer than the catalog's");
            return;
        }
        const newest = versions.reduce((a, b) => (a === undefined || isOlder(a, b) ? b : a), undefined);
        const known = metadata.shardVersion;
        if (newest === undefined ? timeOf(known)[0] !== 0 : isOlder(known, newest)) return;
        if (newest !== undefined && isOlder(newest, known)) {
            yield say(`knows version ${tojson(known)}, the catalog ${tojson(newest)}`);
            return;
        }
        const chunks = metadata.chunks || [];
        if (chunks.length >= 1000) return;
        const found = join(chunks.map(([min, max]) => ({ min, max })));
        if (!sameBson(found, wanted)) yield say(`believes to own ${tojsononeline(found)}, owns ${tojsononeline(wanted)}`);
    }

    // ---- the table ----

    // Name of the check, the flag of TestData (or of stop's options) that leaves it out, what it says when it fails.
    const CHECKS = [
        ["checkUUIDsConsistentAcrossCluster", "skipCheckingUUIDsConsistentAcrossCluster", uuids, "collection UUIDs are not consistent"],
        ["checkMetadataConsistency", "skipCheckMetadataConsistency", metadata, "found inconsistent metadata"],
        ["checkIndexesConsistentAcrossCluster", "skipCheckingIndexesConsistentAcrossCluster", indexes, "found inconsistent indexes"],
        ["checkOrphansAreDeleted", "skipCheckOrphans", orphans, "found orphaned documents"],
        ["checkRoutingTableConsistency", "skipCheckRoutingTableConsistency", routing, "the routing table is inconsistent"],
        ["checkShardFilteringMetadata", "skipCheckShardFilteringMetadata", filtering, "the shards' filtering metadata is inconsistent"],
    ];

    // `run` one check against a cluster, seen through a router; `all` what no flag leaves out.
    const ClusterChecks = {
        names: CHECKS.map(([name]) => name),
        flagOf: Object.fromEntries(CHECKS.map(([name, flag]) => [name, flag])),
        isSkipped(name, given = {}) {
            const flag = ClusterChecks.flagOf[name];
            return Boolean((globalThis.TestData || {})[flag] || given[flag]);
        },
        find(name, mongos, given) {
            const [, , check] = CHECKS.find(([known]) => known === name);
            return [...check(new ClusterView(mongos), given)];
        },
        run(name, mongos, given) {
            const [, , check, message] = CHECKS.find(([known]) => known === name);
            const found = [...check(given?.view || new ClusterView(mongos), given)];
            assert.eq(0, found.length, `${name}: ${message}:\n  ${found.join("\n  ")}`);
        },
        all(mongos, given = {}) {
            const wanted = ClusterChecks.names.filter((name) => !ClusterChecks.isSkipped(name, given));
            if (wanted.length === 0) return;
            const view = new ClusterView(mongos);
            wanted.forEach((name) => ClusterChecks.run(name, mongos, { ...given, view }));
        },
    };

    globalThis.ClusterChecks = ClusterChecks;
})();
