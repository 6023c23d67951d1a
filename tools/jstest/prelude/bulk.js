// Lists of writes: how statements become write commands, how the commands' replies become one result, and the bulk API
// that builds such lists.
//
// A batch is one command: statements of one type, in number and bytes below the server's limits. An ordered list starts
// a new batch whenever the type changes and stops at the first error; an unordered one gathers each type's statements.
(function (global) {
    "use strict";

    const {INSERT, UPDATE, REMOVE} = global._batchTypes;
    const STATEMENTS_MAX = 100000;
    const BATCH_BYTES_MAX = 16 * 1024 * 1024;
    // What a statement costs besides its own bytes: type, index as a name, terminator.
    const STATEMENT_OVERHEAD = 12;

    const COMMANDS = {
        [INSERT]: {name: "insert", list: "documents"},
        [UPDATE]: {name: "update", list: "updates"},
        [REMOVE]: {name: "delete", list: "deletes"},
    };

    // Statements.

    /** The document with an `_id` in front, a new one when it has none; the given document stays as it is. */
    global._withId = function (document) {
        if (document === null || typeof document !== "object" || document._id !== undefined) return document;
        return Object.assign({_id: new ObjectId()}, document);
    };

    const isPipeline = update => Array.isArray(update);
    function hasOperators(update) {
        const first = Object.keys(update)[0];
        return first !== undefined && first.startsWith("$");
    }
    global._checkUpdate = function (update) {
        if (update === undefined || update === null || typeof update !== "object") throw new Error("need an update object or pipeline");
        if (!isPipeline(update) && !hasOperators(update)) throw new Error("the update operation document must contain atomic operators.");
    };
    global._checkReplacement = function (replacement) {
        if (replacement === undefined || replacement === null || typeof replacement !== "object" || isPipeline(replacement) || hasOperators(replacement))
            throw new Error("the replace operation document must not contain atomic operators");
    };

    const OPTIONS_OF_STATEMENTS = ["upsert", "collation", "arrayFilters", "hint", "sort", "c", "constants"];

    global._updateStatement = function (filter, update, multi, options = {}) {
        const statement = {q: filter, u: update, multi: Boolean(multi), upsert: Boolean(options.upsert)};
        for (const name of OPTIONS_OF_STATEMENTS) {
            if (name !== "upsert" && options[name] !== undefined) statement[name] = options[name];
        }
        return statement;
    };
    global._removeStatement = function (filter, justOne, options = {}) {
        const statement = {q: filter, limit: justOne ? 1 : 0};
        for (const name of ["collation", "hint"]) {
            if (options[name] !== undefined) statement[name] = options[name];
        }
        return statement;
    };

    // Batches.

    class Batch {
        constructor(type) {
            this.batchType = type;
            this.operations = [];
            // Where each statement stands in the whole list.
            this.indexes = [];
            this.bytes = 0;
        }

        hasRoomFor(bytes) {
            return this.operations.length < STATEMENTS_MAX && (this.operations.length === 0 || this.bytes + bytes <= BATCH_BYTES_MAX);
        }

        add(operation, index, bytes) {
            this.operations.push(operation);
            this.indexes.push(index);
            this.bytes += bytes;
        }
    }

    /** Distributes a list of statements over batches. */
    class BatchList {
        constructor(ordered) {
            this.ordered = ordered;
            this.batches = [];
            this.count = 0;
            // The batches that still take statements: one at a time when ordered, one of each type otherwise.
            this._open = {};
        }

        add(type, operation) {
            const bytes = Object.bsonsize(operation) + STATEMENT_OVERHEAD;
            let batch = this._open[type];
            if (batch === undefined || !batch.hasRoomFor(bytes)) {
                batch = new Batch(type);
                this.batches.push(batch);
                if (this.ordered) this._open = {};
                this._open[type] = batch;
            }
            batch.add(operation, this.count++, bytes);
        }
    }

    /** A list of one batch with one statement, whose size nobody needs to know. */
    function single(type, operation) {
        const batch = new Batch(type);
        batch.add(operation, 0, 0);
        return [batch];
    }

    // Execution.

    function emptyRaw() {
        return {writeErrors: [], writeConcernErrors: [], nInserted: 0, nUpserted: 0, nMatched: 0, nModified: 0, nRemoved: 0, upserted: [],
            insertedIds: []};
    }

    /** Of an insert batch, the `_id` of each document that did not fail; what the server did not come to failed, too. */
    function insertedIds(batch, reply) {
        const errors = new Set((reply.writeErrors || []).map(error => error.index));
        const tried = Number(reply.n || 0) + errors.size;
        return batch.operations.slice(0, tried).map((document, i) => ({index: batch.indexes[i], _id: document._id}))
            .filter((_, i) => !errors.has(i));
    }

    function addCounts(raw, batch, reply) {
        const n = Number(reply.n || 0);
        if (batch.batchType === INSERT) {
            raw.nInserted += n;
            raw.insertedIds.push(...insertedIds(batch, reply));
        }
        if (batch.batchType === REMOVE) raw.nRemoved += n;
        if (batch.batchType !== UPDATE) return;
        const upserted = reply.upserted || [];
        raw.nUpserted += upserted.length;
        raw.nMatched += n - upserted.length;
        raw.nModified += Number(reply.nModified || 0);
        for (const entry of upserted) raw.upserted.push({index: batch.indexes[entry.index], _id: entry._id});
    }

    function addErrors(raw, batch, reply) {
        for (const error of reply.writeErrors || []) {
            const at = {index: batch.indexes[error.index], op: batch.operations[error.index]};
            raw.writeErrors.push(new WriteError(Object.assign({}, error, at)));
        }
        if (reply.writeConcernError) raw.writeConcernErrors.push(new WriteConcernError(reply.writeConcernError));
        if (reply.errorLabels) raw.errorLabels = reply.errorLabels;
    }

    /** The write concern to send: the operation's own or an inherited one; inside a transaction only its end has one. */
    global._writeConcernToSend = function (collection, given) {
        if (given !== undefined && given !== null) return given instanceof WriteConcern ? given.toJSON() : new WriteConcern(given).toJSON();
        const session = collection.getDB().getSession();
        if (session._serverSession.isTxnActive()) return undefined;
        const inherited = session.getOptions().getWriteConcern() || collection.getWriteConcern();
        if (inherited === undefined) return undefined;
        return inherited instanceof WriteConcern ? inherited.toJSON() : inherited;
    };

    /** The command document of a batch. `extra` are fields of the command itself, such as `let` and `comment`. */
    function commandOf(collection, batch, {ordered, writeConcern, extra}) {
        const {name, list} = COMMANDS[batch.batchType];
        const command = {[name]: collection.getName(), [list]: batch.operations, ordered};
        if (writeConcern !== undefined) command.writeConcern = writeConcern;
        for (const field of Object.keys(extra || {})) {
            if (extra[field] !== undefined) command[field] = extra[field];
        }
        return command;
    }

    /**
     * Sends batches and returns the raw result. Throws a WriteCommandError when a command failed as a whole. The
     * statements of an ordered list end with the first error.
     */
    function execute(collection, batches, options) {
        const raw = emptyRaw();
        for (const batch of batches) {
            const reply = collection._dbCommand(commandOf(collection, batch, options));
            if (!reply.ok) throw new WriteCommandError(reply);
            addCounts(raw, batch, reply);
            addErrors(raw, batch, reply);
            if (options.ordered && raw.writeErrors.length > 0) break;
        }
        return raw;
    }

    /** Performs batches of one type and returns a BulkWriteResult, or the WriteCommandError, instead of throwing it. */
    function perform(collection, type, batches, {writeConcern, extra, ordered = true} = {}) {
        const concern = global._writeConcernToSend(collection, writeConcern);
        try {
            return new BulkWriteResult(execute(collection, batches, {ordered, writeConcern: concern, extra}), type, concern);
        } catch (error) {
            if (error instanceof WriteCommandError) return error;
            throw error;
        }
    }

    /** Performs one statement and returns a WriteResult, or the WriteCommandError, instead of throwing either. */
    global._writeOne = (collection, type, operation, options) =>
        perform(collection, type, single(type, operation), options).toSingleResult();

    /** Inserts documents that have their `_id`; returns a BulkWriteResult or the WriteCommandError. */
    global._insertMany = function (collection, documents, options = {}) {
        const {ordered = true} = options;
        const list = new BatchList(ordered);
        for (const document of documents) list.add(INSERT, document);
        return perform(collection, INSERT, list.batches, options);
    };

    // The bulk API.

    /** What follows `bulk.find(filter)`: options of the statement, then what to do with the documents found. */
    class FindOperations {
        constructor(bulk, filter) {
            Object.defineProperty(this, "_bulk", {value: bulk, enumerable: false});
            this._filter = filter;
            this._options = {};
        }

        upsert(value = true) {
            this._options.upsert = value;
            return this;
        }

        collation(value) {
            this._options.collation = value;
            return this;
        }

        arrayFilters(value) {
            this._options.arrayFilters = value;
            return this;
        }

        hint(value) {
            this._options.hint = value;
            return this;
        }

        sort(value) {
            this._options.sort = value;
            return this;
        }

        update(update) {
            global._checkUpdate(update);
            return this._update(update, true);
        }

        updateMany(update) {
            return this.update(update);
        }

        updateOne(update) {
            global._checkUpdate(update);
            return this._update(update, false);
        }

        replaceOne(replacement) {
            global._checkReplacement(replacement);
            return this._update(replacement, false);
        }

        _update(update, multi) {
            this._bulk._add(UPDATE, global._updateStatement(this._filter, update, multi, this._options));
            return this._bulk;
        }

        remove() {
            return this._remove(false);
        }

        delete() {
            return this._remove(false);
        }

        removeOne() {
            return this._remove(true);
        }

        deleteOne() {
            return this._remove(true);
        }

        _remove(justOne) {
            this._bulk._add(REMOVE, global._removeStatement(this._filter, justOne, this._options));
            return this._bulk;
        }
    }

    class Bulk {
        constructor(collection, ordered) {
            this.nInsertOps = 0;
            this.nUpdateOps = 0;
            this.nRemoveOps = 0;
            this.nBatches = 0;
            const hidden = {_collection: collection, _ordered: ordered, _list: new BatchList(ordered), _executed: false, _extra: {}};
            for (const name of Object.keys(hidden))
                Object.defineProperty(this, name, {value: hidden[name], writable: true, enumerable: false});
        }

        insert(document) {
            if (document === null || typeof document !== "object" || Array.isArray(document) && document.length === undefined)
                throw new Error("can't insert a non-object into a bulk: " + tojson(document));
            return this._add(INSERT, global._withId(document));
        }

        find(filter) {
            if (filter === undefined) throw new Error("find() requires query criteria");
            return new FindOperations(this, filter);
        }

        _add(type, operation) {
            if (this._executed) throw new Error("A bulk operation cannot be re-executed");
            this._list.add(type, operation);
            this[type === INSERT ? "nInsertOps" : type === UPDATE ? "nUpdateOps" : "nRemoveOps"] += 1;
            this.nBatches = this._list.batches.length;
            return this;
        }

        setLet(variables) {
            this._extra.let = variables;
        }

        getOperations() {
            return this._list.batches.map(batch => ({
                originalZeroIndex: batch.indexes[0], batchType: batch.batchType, operations: batch.operations,
            }));
        }

        /** Sends everything; a BulkWriteError is thrown when a statement or the write concern failed. */
        execute(writeConcern) {
            if (this._executed) throw new Error("A bulk operation cannot be re-executed");
            if (this._list.count === 0) throw new Error("Invalid Operation, no operations specified");
            this._executed = true;
            const concern = global._writeConcernToSend(this._collection, writeConcern);
            const raw = execute(this._collection, this._list.batches,
                {ordered: this._ordered, writeConcern: concern, extra: this._extra});
            const types = new Set(this._list.batches.map(batch => batch.batchType));
            const result = new BulkWriteResult(raw, types.size === 1 ? [...types][0] : undefined, concern);
            if (result.hasWriteErrors() || result.hasWriteConcernError()) throw result.toError();
            return result;
        }

        toJSON() {
            return {nInsertOps: this.nInsertOps, nUpdateOps: this.nUpdateOps, nRemoveOps: this.nRemoveOps, nBatches: this.nBatches};
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(this.toJSON(), indent, nolint, depth);
        }

        toString() {
            return tojson(this.toJSON());
        }

        shellPrint() {
            print(this.toString());
        }
    }

    global._defineMethods(DBCollection.prototype, {
        initializeOrderedBulkOp() {
            return new Bulk(this, true);
        },
        initializeUnorderedBulkOp() {
            return new Bulk(this, false);
        },
    });
})(globalThis);
