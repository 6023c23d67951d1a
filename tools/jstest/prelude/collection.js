// A collection: finding, the writes of the older API, indexes, administration and statistics. The newer single-document
// API (insertOne and so on) is in crud.js, cursors in query.js, explain in explain.js.
(function (global) {
    "use strict";

    const define = methods => global._defineMethods(DBCollection.prototype, methods);
    const {INSERT, UPDATE, REMOVE} = global._batchTypes;
    const NAMESPACE_NOT_FOUND = 26;
    const isMissing = reply => reply.code === NAMESPACE_NOT_FOUND || /^ns (not found|does(n't| not) exist)/.test(reply.errmsg || "");

    /** The options a test gave, without those it left undefined. */
    function defined(options) {
        const kept = {};
        for (const name of Object.keys(options || {})) {
            if (options[name] !== undefined) kept[name] = options[name];
        }
        return kept;
    }
    global._definedOptions = defined;

    // Names, relatives and commands.

    define({
        getName() {
            return this._shortName;
        },
        getFullName() {
            return this._fullName;
        },
        getDB() {
            return this._db;
        },
        getMongo() {
            return this._db.getMongo();
        },
        getCollection(subName) {
            return this._db.getCollection(this._shortName + "." + subName);
        },
        /** Fails unless this has what every collection has: names, a database and a connection. */
        verify() {
            for (const part of ["_fullName", "_shortName", "_db", "_mongo"]) assert(this[part], "a collection without " + part);
        },
        toString() {
            return this._fullName;
        },
        tojson() {
            return this._fullName;
        },
        shellPrint() {
            print(this._fullName);
        },
        /** A command about this collection: a document, or its name and further fields. */
        runCommand(command, extra) {
            return this._db.runCommand(collectionCommand(this, command, extra));
        },
        runReadCommand(command, extra) {
            return this._db.runReadCommand(collectionCommand(this, command, extra));
        },
        _dbCommand(command, extra) {
            return this._db._dbCommand(collectionCommand(this, command, extra));
        },
        _dbReadCommand(command, extra) {
            return this.runReadCommand(command, extra);
        },
        setSecondaryOk(value) {
            this.getMongo().setSecondaryOk(value);
        },
        setSlaveOk(value) {
            this.getMongo().setSecondaryOk(value);
        },
        getSecondaryOk() {
            return this.getMongo().getSecondaryOk();
        },
        getSlaveOk() {
            return this.getSecondaryOk();
        },
        getQueryOptions() {
            return this._db.getQueryOptions();
        },
        setWriteConcern(concern) {
            this._writeConcern = concern instanceof WriteConcern ? concern : new WriteConcern(concern);
        },
        getWriteConcern() {
            return this._writeConcern || this._db.getWriteConcern();
        },
        unsetWriteConcern() {
            this._writeConcern = undefined;
        },
    });

    function collectionCommand(collection, command, extra) {
        if (typeof command === "object") return command;
        return Object.assign({[command]: collection._shortName}, extra);
    }

    // Finding.

    function filterOf(filter) {
        if (filter === undefined || filter === null) return {};
        if (filter instanceof ObjectId) return {_id: filter};
        if (typeof filter === "string" || typeof filter === "function") return {$where: filter};
        if (typeof filter !== "object") throw new Error("don't know how to massage : " + typeof filter);
        return filter;
    }
    global._filterOf = filterOf;

    define({
        _massageObject(filter) {
            return filterOf(filter);
        },
        find(filter, projection, limit, skip, batchSize, options) {
            const flags = options === undefined ? this.getQueryOptions() : options;
            const cursor = new DBQuery(this.getMongo(), this._db, this, this._fullName, filterOf(filter), projection, limit, skip, batchSize, flags);
            cursor._takeDefaults();
            return cursor;
        },
        findOne(filter, projection, options, readConcern, collation) {
            const cursor = this.find(filter, projection, -1, 0, 0, options);
            if (readConcern) cursor.readConcern(readConcern);
            if (collation) cursor.collation(collation);
            if (!cursor.hasNext()) return null;
            const found = cursor.next();
            if (found.$err) throw _getErrorWithCode(found, "error " + tojson(found));
            return found;
        },
        count(filter, options = {}) {
            const cursor = this.find(filter);
            cursor._takeCountOptions(options);
            return cursor.count(true);
        },
        distinct(key, filter, options = {}) {
            if (typeof key !== "string") throw new Error("The first argument to the distinct command must be a string but was a " + typeof key);
            const known = ["maxTimeMS", "collation", "comment", "hint", "rawData", "readConcern"];
            const given = defined(options);
            const command = {distinct: this._shortName, key, query: filter === undefined ? {} : filter};
            for (const name of known) if (given[name] !== undefined) command[name] = given[name];
            return _checkedReply(this.runReadCommand(command), "distinct failed").values;
        },
        /** Runs a pipeline given as one array, or as stages one after another. */
        aggregate(pipeline, options) {
            if (!Array.isArray(pipeline)) return this.aggregate(Array.from(arguments));
            const given = options || {};
            if (Object.prototype.hasOwnProperty.call(given, "explain")) {
                const {explain, ...rest} = given;
                if (typeof explain === "boolean" && !explain) return this.aggregate(pipeline, rest);
                return this.explain(explain === true ? "queryPlanner" : explain).aggregate(pipeline, rest);
            }
            return global._aggregate(this._db, this._shortName, pipeline, given);
        },
        watch(pipeline = [], options = {}) {
            const {stage, rest} = global._changeStreamOptions(options);
            return this.aggregate([{$changeStream: stage}, ...pipeline], rest);
        },
        mapReduce(map, reduce, optionsOrOut) {
            const options = typeof optionsOrOut === "string" ? {out: optionsOrOut} : optionsOrOut;
            if (!options || options.out === undefined) throw new Error("need to supply an optionsOrOutString");
            const command = Object.assign({mapReduce: this._shortName, map, reduce}, options);
            const raw = this._db.runReadCommand(command);
            return new MapReduceResult(this._db, _checkedReply(raw, "map reduce failed"));
        },
    });

    /** The reply of mapReduce, with access to the results wherever they are. */
    class MapReduceResult {
        constructor(database, reply) {
            Object.defineProperties(this, Object.getOwnPropertyDescriptors(reply));
            const {result} = reply;
            const target = result === undefined ? undefined :
                typeof result === "object" ? database.getSiblingDB(result.db).getCollection(result.collection) : database.getCollection(result);
            Object.defineProperty(this, "_target", {value: target, enumerable: false});
        }

        /** A cursor over the collection of results; of inline results, the results. */
        find(...given) {
            return this._target === undefined ? this.results : this._target.find(...given);
        }

        /** What the keys became: `{key: value}`. */
        convertToSingleObject() {
            const found = this._target === undefined ? this.results : this.find().toArray();
            return Object.fromEntries(found.map(({_id, value}) => [_id, value]));
        }

        drop() {
            return this._target === undefined ? undefined : this._target.drop();
        }
    }
    global.MapReduceResult = MapReduceResult;

    /** Sends an aggregate command; `target` is a collection's name, or 1 for the database itself. */
    global._aggregate = function (database, target, pipeline, options) {
        if (!Array.isArray(pipeline)) throw new Error("a pipeline is an array of stages, found " + tojson(pipeline));
        const {cursor, batchSize, useCursor, ...rest} = defined(options);
        const cursorOptions = Object.assign({}, cursor, batchSize === undefined ? {} : {batchSize});
        const command = Object.assign({aggregate: target, pipeline}, rest, {cursor: cursorOptions});
        const writes = pipeline.length > 0 && pipeline.some(stage => stage && (stage.$out !== undefined || stage.$merge !== undefined));
        const reply = writes ? database.runCommand(withInheritedConcern(database, command)) : database.runReadCommand(command);
        if (!reply.ok) throw _getErrorWithCode(reply, "command failed: " + tojson(reply) + " with original command request: " +
            tojson(command) + " : aggregate failed");
        if (reply.cursor === undefined) return reply;
        return new DBCommandCursor(database, reply, cursorOptions.batchSize, options.maxAwaitTimeMS);
    };
    function withInheritedConcern(database, command) {
        const concern = database.getWriteConcern();
        if (command.writeConcern !== undefined || concern === undefined) return command;
        return Object.assign({}, command, {writeConcern: concern.toJSON()});
    }

    /** Separates options of the `$changeStream` stage from those of the aggregate command. */
    global._changeStreamOptions = function (options) {
        const stage = {}, rest = {};
        const ofStage = ["fullDocument", "fullDocumentBeforeChange", "resumeAfter", "startAfter", "startAtOperationTime",
            "allChangesForCluster", "allowToRunOnConfigDB", "allowToRunOnSystemNS", "showExpandedEvents", "showSystemEvents",
            "showRawUpdateDescription", "matchCollectionUUIDForUpdateLookup", "version", "supportedEvents", "ignoreRemovedShards"];
        for (const name of Object.keys(options || {})) {
            (ofStage.includes(name) ? stage : rest)[name] = options[name];
        }
        return {stage, rest};
    };

    // Writes.

    /** Options of the older `insert`: an object, or bits of which the first says to go on after an error. */
    function insertOptions(options) {
        if (options === undefined || options === null) return {ordered: true};
        if (typeof options === "number") return {ordered: (options & 1) === 0};
        if (typeof options === "boolean") return {ordered: !options};
        const {ordered, writeConcern, ...extra} = options;
        return {ordered: ordered === undefined ? true : ordered, writeConcern, extra: extraOf(extra)};
    }
    function extraOf(options) {
        const extra = {};
        for (const name of ["let", "comment", "bypassDocumentValidation", "maxTimeMS", "rawData"]) {
            if (options[name] !== undefined) extra[name] = options[name];
        }
        return extra;
    }

    define({
        insert(document, options) {
            if (document === undefined || document === null || typeof document !== "object") throw new Error("no object passed to insert!");
            const given = insertOptions(options);
            if (!Array.isArray(document)) return global._writeOne(this, INSERT, global._withId(document), given);
            if (document.length === 0) throw new Error("attempted to insert an empty array");
            return global._insertMany(this, document.map(global._withId), given);
        },
        /** `update(filter, update, {upsert, multi, ...})`, or the flags as the third and fourth arguments. */
        update(filter, update, upsertOrOptions, multi) {
            if (filter === undefined || filter === null) throw new Error("need a query");
            if (update === undefined || update === null) throw new Error("need an update object or pipeline");
            const asObject = typeof upsertOrOptions === "object" && upsertOrOptions !== null;
            if (asObject && multi !== undefined) throw new Error("Fourth argument must be empty when specifying upsert and multi with an object.");
            const options = asObject ? upsertOrOptions : {upsert: upsertOrOptions, multi};
            const statement = global._updateStatement(filterOf(filter), update, options.multi, options);
            return global._writeOne(this, UPDATE, statement, {writeConcern: options.writeConcern, extra: extraOf(options)});
        },
        /** `remove(filter, justOne)` or `remove(filter, {justOne, collation, writeConcern, ...})`. */
        remove(filter, justOneOrOptions) {
            if (filter === undefined) throw new Error("remove needs a query");
            const asObject = typeof justOneOrOptions === "object" && justOneOrOptions !== null;
            const options = asObject ? justOneOrOptions : {justOne: justOneOrOptions};
            const statement = global._removeStatement(filterOf(filter), options.justOne, options);
            return global._writeOne(this, REMOVE, statement, {writeConcern: options.writeConcern, extra: extraOf(options)});
        },
        save(document, options) {
            if (document === undefined || document === null) throw new Error("can't save a null");
            if (typeof document !== "object") throw new Error("can't save a number or string");
            if (document._id === undefined) return this.insert(document, options);
            return this.update({_id: document._id}, document, Object.assign({upsert: true}, options));
        },
        /** The document before (or, with `new`, after) the change; null when none matched. */
        findAndModify(options = {}) {
            const command = Object.assign({findAndModify: this._shortName}, defined(options));
            const fields = {writeConcern: global._writeConcernToSend(this, command.writeConcern)};
            if (fields.writeConcern !== undefined) Object.assign(command, fields);
            const reply = this._dbCommand(command);
            if (!reply.ok && reply.errmsg !== "No matching object found")
                throw _getErrorWithCode(reply, "findAndModifyFailed failed: " + tojson(reply));
            return reply.value === undefined ? null : reply.value;
        },
    });

    // Indexes.

    const indexName = keys => Object.keys(keys).map(field => field + "_" + keyPart(keys[field])).join("_");
    function keyPart(value) {
        return typeof value === "object" && value !== null && typeof value.toNumber === "function" ? value.toNumber() : value;
    }
    /** The specification of an index: `options` may be a document, a name, or true for a unique one. */
    function indexSpecification(keys, options) {
        const spec = {name: indexName(keys), key: keys};
        if (typeof options === "string") return Object.assign(spec, {name: options});
        if (typeof options === "boolean") return options ? Object.assign(spec, {unique: true}) : spec;
        return Object.assign(spec, defined(options));
    }

    define({
        createIndex(keys, options, commitQuorum) {
            if (Array.isArray(keys)) throw new Error("createIndex takes one key pattern; createIndexes takes several");
            return this.createIndexes([keys], options, commitQuorum);
        },
        createIndexes(keysList, options, commitQuorum) {
            if (!Array.isArray(keysList)) throw new Error("createIndexes first argument should be an array");
            const command = {createIndexes: this._shortName, indexes: keysList.map(keys => indexSpecification(keys, options))};
            if (commitQuorum !== undefined) command.commitQuorum = commitQuorum;
            const concern = this._plainWriteConcern();
            if (concern !== undefined) command.writeConcern = concern;
            return this.runCommand(command);
        },
        ensureIndex(keys, options, commitQuorum) {
            return this.createIndex(keys, options, commitQuorum);
        },
        _plainWriteConcern() {
            return global._writeConcernToSend(this);
        },
        getIndexes(filter) {
            const reply = this._db.runReadCommand({listIndexes: this._shortName});
            if (!reply.ok && reply.code === NAMESPACE_NOT_FOUND) return [];
            _checkedReply(reply, "listIndexes failed");
            const indexes = new DBCommandCursor(this._db, reply).toArray();
            return filter ? indexes.filter(index => Object.keys(filter).every(name => friendlyEqual(index[name], filter[name]))) : indexes;
        },
        getIndices(filter) {
            return this.getIndexes(filter);
        },
        getIndexSpecs() {
            return this.getIndexes();
        },
        getIndexByKey(keys) {
            return this.getIndexes().find(index => friendlyEqual(index.key, keys)) || null;
        },
        getIndexByName(name) {
            return this.getIndexes().find(index => index.name === name) || null;
        },
        getIndexKeys() {
            return this.getIndexes().map(index => index.key);
        },
        _indexSpec(keys, options) {
            return Object.assign({ns: this._fullName}, indexSpecification(keys, options));
        },
        _genIndexName: indexName,
        dropIndex(index) {
            if (index === undefined || index === null) throw new Error("need to specify index to dropIndex");
            return this.dropIndexes(index);
        },
        deleteIndex(index) {
            return this.dropIndex(index);
        },
        /** Drops one index by name or key pattern, several by their names, or all but the one on `_id`. */
        dropIndexes(index = "*") {
            const command = {dropIndexes: this._shortName, index};
            const concern = this._plainWriteConcern();
            if (concern !== undefined) command.writeConcern = concern;
            return this.runCommand(command);
        },
        reIndex() {
            return this.runCommand({reIndex: this._shortName});
        },
        hideIndex(index) {
            return changeHidden(this, index, true);
        },
        unhideIndex(index) {
            return changeHidden(this, index, false);
        },
    });

    function changeHidden(collection, index, hidden) {
        const named = typeof index === "string" ? {name: index} : {keyPattern: index};
        return collection._dbCommand("collMod", {index: Object.assign(named, {hidden})});
    }

    // Administration.

    define({
        /** True; false when the collection did not exist as far as the server says so. */
        drop(options) {
            const concern = this._plainWriteConcern();
            const command = Object.assign({drop: this._shortName}, concern === undefined ? {} : {writeConcern: concern}, options);
            const reply = this._db.runCommand(command);
            if (reply.ok) return true;
            if (isMissing(reply)) return false;
            throw _getErrorWithCode(reply, "drop failed: " + tojson(reply));
        },
        renameCollection(newName, dropTarget) {
            return this._db.adminCommand({
                renameCollection: this._fullName, to: this._db._name + "." + newName, dropTarget: Boolean(dropTarget),
            });
        },
        /** The collection's entry of listCollections; null when it does not exist. */
        exists() {
            const infos = this._db.getCollectionInfos({name: this._shortName});
            return infos.length ? infos[0] : null;
        },
        isCapped() {
            const entry = this.exists();
            return Boolean(entry && entry.options && entry.options.capped);
        },
        convertToCapped(bytes) {
            if (!bytes) throw new Error("have to specify # of bytes");
            return this._dbCommand({convertToCapped: this._shortName, size: bytes});
        },
        getUUID() {
            const entry = this.exists();
            return entry ? entry.info.uuid : undefined;
        },
        validate(options) {
            const given = typeof options === "object" && options !== null ? options : options === undefined ? {} : {full: options};
            return this._db.runReadCommand(Object.assign({validate: this._shortName}, given));
        },
        compact(options) {
            return this.runCommand(Object.assign({compact: this._shortName}, options));
        },
        /** The hash of the collection's documents, as dbHash computes it. */
        hashAllDocs() {
            const reply = this._dbCommand({dbHash: 1, collections: [this._shortName]});
            return _checkedReply(reply, "dbHash failed").collections[this._shortName];
        },
        getShardVersion() {
            return this._db.adminCommand({getShardVersion: this._fullName});
        },
        getSplitKeysForChunks(chunkSize) {
            return this._db.adminCommand({splitVector: this._fullName, maxChunkSizeBytes: chunkSize});
        },
        analyzeShardKey(key, options) {
            return this._db.adminCommand(Object.assign({analyzeShardKey: this._fullName, key}, options));
        },
        configureQueryAnalyzer(options) {
            return this._db.adminCommand(Object.assign({configureQueryAnalyzer: this._fullName}, options));
        },
        checkMetadataConsistency(options) {
            return this._db.runCursorCommand(Object.assign({checkMetadataConsistency: this._shortName}, options));
        },
    });

    // Statistics.

    function statsOptions(argument) {
        return typeof argument === "object" && argument !== null ? argument : argument === undefined ? {} : {scale: argument};
    }
    function field(collection, argument, name) {
        const reply = collection.stats(argument);
        return reply.ok ? reply[name] : 0;
    }

    define({
        /** collStats, with `indexDetails` only when they were asked for (all, or those of one index). */
        stats(argument) {
            const {scale, indexDetails, indexDetailsKey, indexDetailsName} = statsOptions(argument);
            if (indexDetailsKey !== undefined && indexDetailsName !== undefined)
                throw new Error("Cannot filter indexDetails on both indexDetailsKey and indexDetailsName");
            const command = {collStats: this._shortName};
            if (scale !== undefined) command.scale = scale;
            const reply = this._db.runReadCommand(command);
            if (!reply.ok) return reply;
            this._filterIndexDetails(reply, indexDetails, indexDetailsKey, indexDetailsName);
            return reply;
        },
        _filterIndexDetails(reply, wanted, key, name) {
            const kept = key === undefined ? name : (this.getIndexByKey(key) || {}).name;
            const filtered = (details = {}) => {
                const only = {};
                for (const index of Object.keys(details)) if (kept === undefined || index === kept) only[index] = details[index];
                return only;
            };
            const holders = [reply, ...Object.values(reply.shards || {})];
            for (const holder of holders) {
                if (!wanted) delete holder.indexDetails;
                else if (holder.indexDetails) holder.indexDetails = filtered(holder.indexDetails);
            }
        },
        dataSize(argument) {
            return field(this, argument, "size");
        },
        storageSize(argument) {
            return field(this, argument, "storageSize");
        },
        totalIndexSize(verbose) {
            const stats = this.stats();
            if (verbose) {
                for (const name of Object.keys(stats.indexSizes || {})) print(name + "\t" + stats.indexSizes[name]);
            }
            return stats.totalIndexSize;
        },
        totalSize() {
            const stats = this.stats();
            return Number(stats.storageSize || 0) + Number(stats.totalIndexSize || 0);
        },
        latencyStats(options = {}) {
            const histograms = options.histograms === undefined ? {} : {histograms: options.histograms};
            return this.aggregate([{$collStats: {latencyStats: histograms}}]);
        },
        getPlanCache() {
            return new PlanCache(this);
        },
    });

    /** The cached plans of a collection, read and cleared by commands. */
    class PlanCache {
        constructor(collection) {
            Object.defineProperty(this, "_collection", {value: collection, enumerable: false});
        }

        getCollection() {
            return this._collection;
        }

        getName() {
            return this._collection.getName();
        }

        list(pipeline = []) {
            return this._collection.aggregate([{$planCacheStats: {}}, ...pipeline]).toArray();
        }

        clear() {
            _checkedReply(this._collection.runCommand("planCacheClear"), "planCacheClear failed");
        }

        clearPlansByQuery(query, projection, sort) {
            const shape = {query: query || {}};
            if (projection !== undefined) shape.projection = projection;
            if (sort !== undefined) shape.sort = sort;
            _checkedReply(this._collection.runCommand("planCacheClear", shape), "planCacheClear failed");
        }

        toString() {
            return "PlanCache for collection " + this.getName() + ". Type help() for more info.";
        }

        tojson() {
            return this.toString();
        }

        shellPrint() {
            print(this.toString());
        }
    }
    global.PlanCache = PlanCache;
})(globalThis);
