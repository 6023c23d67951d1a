// Explaining: `collection.explain(verbosity).find(...)` and its like send the same commands wrapped in explain.
(function (global) {
    "use strict";

    const VERBOSITIES = ["queryPlanner", "executionStats", "allPlansExecution"];

    /** The verbosity by its name; true is the most, false or nothing the least. */
    global._explainVerbosity = function (verbosity) {
        if (verbosity === undefined || verbosity === false) return "queryPlanner";
        if (verbosity === true) return "allPlansExecution";
        if (typeof verbosity === "number") return verbosity ? "allPlansExecution" : "queryPlanner";
        if (!VERBOSITIES.includes(verbosity) && typeof verbosity !== "string")
            throw new Error("explain verbosity must be one of {'" + VERBOSITIES.join("', '") + "'}");
        return verbosity;
    };

    /** Wraps a command; what concerns the operation as a whole stands outside. */
    function explained(command, verbosity) {
        const {maxTimeMS, readConcern, ...inner} = command;
        const outer = {explain: inner, verbosity};
        if (maxTimeMS !== undefined) outer.maxTimeMS = maxTimeMS;
        if (readConcern !== undefined) outer.readConcern = readConcern;
        return outer;
    }

    // A query to explain: it takes the modifiers of a query and is sent by `finish`, or by asking for its document.
    class DBExplainQuery {
        constructor(query, verbosity) {
            this._query = query;
            this._verbosity = verbosity;
            this._finished = false;
            this._applyLimits = false;
            this._isCount = false;
        }

        getQuery() {
            return this._query;
        }

        getVerbosity() {
            return this._verbosity;
        }

        setVerbosity(verbosity) {
            this._verbosity = global._explainVerbosity(verbosity);
            return this;
        }

        /** Explains the count command of the query instead of its find command. */
        count(applyLimits) {
            this._isCount = true;
            this._applyLimits = Boolean(applyLimits);
            return this.finish();
        }

        finish() {
            if (this._finished) throw new Error("query has already been explained");
            this._finished = true;
            const command = this._isCount ? this._query._convertToCountCommand(this._applyLimits) : this._query._convertToCommand();
            return _checkedReply(this._query._send(explained(command, this._verbosity)), "explain failed");
        }

        hasNext() {
            return !this._finished;
        }

        next() {
            return this.finish();
        }

        forEach(func) {
            while (this.hasNext()) func(this.next());
        }

        toString() {
            return "DBExplainQuery(" + this._query + ")";
        }

        shellPrint() {
            print(tojson(this.finish()));
        }
    }
    for (const name of ["sort", "hint", "min", "max", "comment", "collation", "maxTimeMS", "let", "returnKey", "showRecordId",
        "showDiskLoc", "allowDiskUse", "limit", "skip", "batchSize", "projection", "readConcern", "readPref", "addOption", "tailable",
        "noCursorTimeout", "allowPartialResults", "addSpecial"]) {
        Object.defineProperty(DBExplainQuery.prototype, name, {
            value(...args) {
                this._query[name](...args);
                return this;
            },
            writable: true, configurable: true, enumerable: false,
        });
    }
    global.DBExplainQuery = DBExplainQuery;

    /** A collection whose operations are explained instead of done. */
    class Explainable {
        constructor(collection, verbosity) {
            this._collection = collection;
            this._verbosity = global._explainVerbosity(verbosity);
        }

        getCollection() {
            return this._collection;
        }

        getVerbosity() {
            return this._verbosity;
        }

        setVerbosity(verbosity) {
            this._verbosity = global._explainVerbosity(verbosity);
            return this;
        }

        _explain(command) {
            return _checkedReply(this._collection.getDB().runReadCommand(explained(command, this._verbosity)), "explain failed");
        }

        find(...args) {
            return new DBExplainQuery(this._collection.find(...args), this._verbosity);
        }

        findOne(...args) {
            return new DBExplainQuery(this._collection.find(...args).limit(-1), this._verbosity).finish();
        }

        count(filter, options = {}) {
            const query = this._collection.find(filter);
            query._takeCountOptions(options);
            return new DBExplainQuery(query, this._verbosity).count(true);
        }

        distinct(key, filter, options) {
            return this._explain(Object.assign({distinct: this._collection.getName(), key, query: filter || {}}, options));
        }

        aggregate(pipeline, options) {
            const stages = Array.isArray(pipeline) ? pipeline : Array.from(arguments);
            const {explain, cursor, ...rest} = Array.isArray(pipeline) && options || {};
            const command = {aggregate: this._collection.getName(), pipeline: stages, cursor: cursor || {}};
            return this._explain(Object.assign(command, rest));
        }

        mapReduce(map, reduce, optionsOrOut) {
            const options = typeof optionsOrOut === "string" ? {out: optionsOrOut} : optionsOrOut;
            return this._explain(Object.assign({mapReduce: this._collection.getName(), map, reduce}, options));
        }

        findAndModify(options) {
            return this._explain(Object.assign({findAndModify: this._collection.getName()}, options));
        }

        update(filter, update, upsertOrOptions, multi) {
            const asObject = typeof upsertOrOptions === "object" && upsertOrOptions !== null;
            const options = asObject ? upsertOrOptions : {upsert: upsertOrOptions, multi};
            const statement = global._updateStatement(global._filterOf(filter), update, options.multi, options);
            return this._explain({update: this._collection.getName(), updates: [statement]});
        }

        remove(filter, justOneOrOptions) {
            const asObject = typeof justOneOrOptions === "object" && justOneOrOptions !== null;
            const options = asObject ? justOneOrOptions : {justOne: justOneOrOptions};
            const statement = global._removeStatement(global._filterOf(filter), options.justOne, options);
            return this._explain({delete: this._collection.getName(), deletes: [statement]});
        }

        updateOne(filter, update, options) {
            return this.update(filter, update, Object.assign({}, options, {multi: false}));
        }

        updateMany(filter, update, options) {
            return this.update(filter, update, Object.assign({}, options, {multi: true}));
        }

        deleteOne(filter, options) {
            return this.remove(filter, Object.assign({}, options, {justOne: true}));
        }

        deleteMany(filter, options) {
            return this.remove(filter, Object.assign({}, options, {justOne: false}));
        }

        toString() {
            return "Explainable(" + this._collection.getFullName() + ")";
        }

        shellPrint() {
            print(this.toString());
        }
    }
    global.Explainable = Explainable;

    global._defineMethods(DBCollection.prototype, {
        explain(verbosity) {
            return new Explainable(this, verbosity);
        },
    });
})(globalThis);
