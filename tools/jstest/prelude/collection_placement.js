// A sharded collection's chunks: where its data is, whether they are balanced and merged; and the indexes of the search
// service, which are not in the collection's own list.
(function (global) {
    "use strict";

    const define = methods => global._defineMethods(DBCollection.prototype, methods);

    // Distribution.

    function shardStatistics(collection) {
        const config = collection.getDB().getSiblingDB("config");
        const entry = config.getCollection("collections").findOne({_id: collection.getFullName()});
        if (!entry || entry.dropped) return undefined;
        const byUuid = entry.timestamp !== undefined || entry.uuid !== undefined;
        const chunks = config.getCollection("chunks").find(byUuid ? {uuid: entry.uuid} : {ns: entry._id}).toArray();
        const counts = {};
        for (const chunk of chunks) counts[chunk.shard] = (counts[chunk.shard] || 0) + 1;
        const stats = collection.stats();
        return {shards: stats.shards || {}, counts, size: Number(stats.size || 0), count: Number(stats.count || 0), chunks: chunks.length};
    }
    const percent = (part, whole) => whole === 0 ? "0" : String(Math.floor(part / whole * 10000) / 100);

    define({
        /** Prints, and returns by shard's name, how much of the data, documents and chunks each shard has. */
        getShardDistribution() {
            const whole = shardStatistics(this);
            if (whole === undefined) {
                print("Collection " + this + " is not sharded.");
                return undefined;
            }
            const distribution = {};
            for (const name of Object.keys(whole.shards)) {
                const shard = whole.shards[name];
                const [size, count, chunks] = [Number(shard.size || 0), Number(shard.count || 0), whole.counts[name] || 0];
                print("\nShard " + name + "\n data : " + size + "B docs : " + count + " chunks : " + chunks);
                distribution["Shard " + name] = {data: size, docs: count, chunks};
            }
            print("\nTotals\n data : " + whole.size + "B docs : " + whole.count + " chunks : " + whole.chunks);
            for (const name of Object.keys(whole.shards)) {
                const shard = whole.shards[name];
                print(" Shard " + name + " contains " + percent(Number(shard.size || 0), whole.size) + "% data, " +
                    percent(Number(shard.count || 0), whole.count) + "% docs in cluster");
            }
            distribution.Totals = {data: whole.size, docs: whole.count, chunks: whole.chunks};
            return distribution;
        },
        disableBalancing() {
            return setBalancing(this, true);
        },
        enableBalancing() {
            return setBalancing(this, false);
        },
        enableAutoMerger() {
            return configureMerging(this, true);
        },
        disableAutoMerger() {
            return configureMerging(this, false);
        },
    });
    function setBalancing(collection, disabled) {
        return collection.getDB().getSiblingDB("config").getCollection("collections")
            .update({_id: collection.getFullName()}, {$set: {noBalance: disabled}});
    }
    function configureMerging(collection, enableAutoMerger) {
        return collection.getDB().adminCommand({configureCollectionBalancing: collection.getFullName(), enableAutoMerger});
    }

    // Search indexes. A server without a search service answers each of these with an error.

    /** A search index by its parts, the optional ones first: `(name, type, definition)`, `(definition)`, or one document. */
    function searchIndex(given) {
        const words = given.filter(one => typeof one === "string");
        const definition = given.find(one => one !== null && typeof one === "object");
        if (definition === undefined) throw new Error("a search index needs a definition");
        if (definition.definition !== undefined) return definition;
        return Object.assign({definition}, global._definedOptions({name: words[0], type: words[1]}));
    }

    define({
        createSearchIndex(...given) {
            return this.createSearchIndexes([searchIndex(given)]);
        },
        createSearchIndexes(indexes) {
            if (!Array.isArray(indexes)) throw new Error("createSearchIndexes takes an array of indexes");
            return this.runCommand("createSearchIndexes", {indexes});
        },
        updateSearchIndex(name, definition) {
            return this.runCommand("updateSearchIndex", {name, definition});
        },
        dropSearchIndex(name) {
            return this.runCommand("dropSearchIndex", {name});
        },
        /** All search indexes of the collection, or the one of a name. */
        getSearchIndexes(name) {
            return this.aggregate([{$listSearchIndexes: name === undefined ? {} : {name}}]).toArray();
        },
    });
})(globalThis);
