// The API the drivers have in common: one method for each write, which returns what was done and throws when it was not.
(function (global) {
    "use strict";

    const {INSERT, UPDATE, REMOVE} = global._batchTypes;

    /** Throws the error a result carries: of its statement, of the command as a whole, or of the write concern. */
    function throwErrors(result) {
        if (result instanceof WriteCommandError) throw result;
        if (result.hasWriteError()) throw result.getWriteError();
        if (result.hasWriteConcernError()) throw result.getWriteConcernError();
        return result;
    }

    function commandOptions(options = {}) {
        const extra = {};
        for (const name of ["let", "comment", "bypassDocumentValidation", "maxTimeMS", "rawData"]) {
            if (options[name] !== undefined) extra[name] = options[name];
        }
        const {w, j, wtimeout} = options;
        const legacy = w !== undefined || j !== undefined || wtimeout !== undefined ? global._definedOptions({w, j, wtimeout}) : undefined;
        return {writeConcern: options.writeConcern || legacy, extra};
    }
    const acknowledged = (collection, options) => {
        const concern = global._writeConcernToSend(collection, options.writeConcern);
        return !(concern && Number(concern.w) === 0);
    };

    function update(collection, filter, change, multi, options = {}) {
        const sent = commandOptions(options);
        const statement = global._updateStatement(global._filterOf(filter), change, multi, options);
        const result = throwErrors(global._writeOne(collection, UPDATE, statement, sent));
        if (!acknowledged(collection, sent)) return {acknowledged: false};
        const shown = {acknowledged: true, matchedCount: result.nMatched, modifiedCount: result.nModified};
        const upserted = result.getUpsertedId();
        if (upserted !== undefined) shown.upsertedId = upserted._id;
        return shown;
    }

    function remove(collection, filter, justOne, options = {}) {
        const sent = commandOptions(options);
        const statement = global._removeStatement(global._filterOf(filter), justOne, options);
        const result = throwErrors(global._writeOne(collection, REMOVE, statement, sent));
        if (!acknowledged(collection, sent)) return {acknowledged: false};
        return {acknowledged: true, deletedCount: result.nRemoved};
    }

    /** findAndModify with the options' names as drivers have them. */
    function findOneAnd(collection, filter, options = {}, change) {
        const {projection, returnNewDocument, returnDocument, ...rest} = options;
        const {writeConcern} = commandOptions(options);
        const command = Object.assign({query: filter || {}}, change);
        if (projection !== undefined) command.fields = projection;
        for (const name of ["sort", "upsert", "collation", "arrayFilters", "hint", "maxTimeMS", "let", "comment",
            "bypassDocumentValidation", "rawData"]) {
            if (rest[name] !== undefined) command[name] = rest[name];
        }
        if (!command.remove) command.new = Boolean(returnNewDocument || returnDocument === "after");
        if (writeConcern !== undefined) command.writeConcern = writeConcern;
        return collection.findAndModify(command);
    }

    // The operations of `bulkWrite`, each by its name: how it is added to a bulk.
    const found = (bulk, op) => {
        const operations = bulk.find(op.filter === undefined ? {} : op.filter);
        for (const name of ["collation", "arrayFilters", "hint", "sort"]) if (op[name] !== undefined) operations[name](op[name]);
        return op.upsert ? operations.upsert() : operations;
    };
    const OPERATIONS = {
        insertOne: (bulk, op) => bulk.insert(op.document),
        updateOne: (bulk, op) => found(bulk, op).updateOne(op.update),
        updateMany: (bulk, op) => found(bulk, op).update(op.update),
        replaceOne: (bulk, op) => found(bulk, op).replaceOne(op.replacement),
        deleteOne: (bulk, op) => found(bulk, op).deleteOne(),
        deleteMany: (bulk, op) => found(bulk, op).delete(),
    };

    // Of the bulkWrite command, which goes over several collections: each operation by its name, `at` its place in nsInfo.
    const statementOf = (op, multi) => global._definedOptions({
        filter: op.filter, multi, collation: op.collation, hint: op.hint, arrayFilters: op.arrayFilters, upsert: op.upsert, sort: op.sort,
    });
    const CLIENT_OPERATIONS = {
        insertOne: (at, op) => ({insert: at, document: global._withId(op.document)}),
        updateOne: (at, op) => ({update: at, updateMods: op.update, ...statementOf(op, false)}),
        updateMany: (at, op) => ({update: at, updateMods: op.update, ...statementOf(op, true)}),
        replaceOne: (at, op) => ({update: at, updateMods: op.replacement, ...statementOf(op, false)}),
        deleteOne: (at, op) => ({delete: at, ...statementOf(op, false)}),
        deleteMany: (at, op) => ({delete: at, ...statementOf(op, true)}),
    };
    const COUNTS_OF_CLIENT = {insertedCount: "nInserted", matchedCount: "nMatched", modifiedCount: "nModified", deletedCount: "nDeleted",
        upsertedCount: "nUpserted"};

    global._defineMethods(Mongo.prototype, {
        /** Performs operations `{name: "insertOne", namespace, document}` on any collections by one bulkWrite command. */
        bulkWrite(operations, options = {}) {
            const {ordered = true, verboseResults = false} = options;
            const {writeConcern, extra} = commandOptions(options);
            const namespaces = [...new Set(operations.map(op => op.namespace))];
            const ops = operations.map(op => {
                if (!CLIENT_OPERATIONS[op.name]) throw new Error("Operation " + tojson(op) + " is not supported by bulkWrite");
                return CLIENT_OPERATIONS[op.name](namespaces.indexOf(op.namespace), op);
            });
            const command = {bulkWrite: 1, ops, nsInfo: namespaces.map(ns => ({ns})), ordered, errorsOnly: !verboseResults, ...extra,
                ...global._definedOptions({writeConcern})};
            const admin = this.getDB("admin");
            const reply = assert.commandWorked(admin.runCommand(command));
            const results = new DBCommandCursor(admin, reply).toArray();
            if (Number(reply.nErrors) > 0) throw _getErrorWithCode(results.find(one => !one.ok), "bulkWrite failed: " + tojson(results));
            const shown = {acknowledged: true};
            for (const [name, count] of Object.entries(COUNTS_OF_CLIENT)) shown[name] = Number(reply[count]);
            return verboseResults ? Object.assign(shown, {results}) : shown;
        },
    });

    global._defineMethods(DBCollection.prototype, {
        insertOne(document, options) {
            if (document === undefined || document === null || typeof document !== "object" || Array.isArray(document))
                throw new Error("insertOne takes one document, found " + tojson(document));
            const sent = commandOptions(options);
            const withId = global._withId(document);
            throwErrors(global._writeOne(this, INSERT, withId, sent));
            return acknowledged(this, sent) ? {acknowledged: true, insertedId: withId._id} : {acknowledged: false};
        },
        insertMany(documents, options = {}) {
            if (!Array.isArray(documents)) throw new Error("insertMany takes an array of documents, found " + tojson(documents));
            if (documents.length === 0) throw new Error("insertMany needs at least one document");
            const sent = commandOptions(options);
            const withIds = documents.map(global._withId);
            const ordered = options.ordered === undefined ? true : options.ordered;
            const result = global._insertMany(this, withIds, Object.assign(sent, {ordered}));
            if (result instanceof WriteCommandError) throw result;
            if (result.hasWriteErrors() || result.hasWriteConcernError()) throw result.toError();
            if (!acknowledged(this, sent)) return {acknowledged: false};
            return {acknowledged: true, insertedIds: withIds.map(document => document._id)};
        },
        updateOne(filter, change, options) {
            global._checkUpdate(change);
            return update(this, filter, change, false, options);
        },
        updateMany(filter, change, options) {
            global._checkUpdate(change);
            return update(this, filter, change, true, options);
        },
        replaceOne(filter, replacement, options) {
            global._checkReplacement(replacement);
            return update(this, filter, replacement, false, options);
        },
        deleteOne(filter, options) {
            return remove(this, filter, true, options);
        },
        deleteMany(filter, options) {
            return remove(this, filter, false, options);
        },
        findOneAndDelete(filter, options) {
            return findOneAnd(this, filter, options, {remove: true});
        },
        findOneAndReplace(filter, replacement, options) {
            global._checkReplacement(replacement);
            return findOneAnd(this, filter, options, {update: replacement});
        },
        findOneAndUpdate(filter, change, options) {
            global._checkUpdate(change);
            return findOneAnd(this, filter, options, {update: change});
        },
        /** Performs operations such as `{insertOne: {document}}`; throws a BulkWriteError when one failed. */
        bulkWrite(operations, options = {}) {
            const ordered = options.ordered === undefined ? true : Boolean(options.ordered);
            const bulk = ordered ? this.initializeOrderedBulkOp() : this.initializeUnorderedBulkOp();
            const {writeConcern, extra} = commandOptions(options);
            Object.assign(bulk._extra, extra);
            const insertedIds = {};
            operations.forEach((operation, index) => {
                const [name] = Object.keys(operation);
                if (!OPERATIONS[name]) throw new Error("Operation " + tojson(operation) + " is not supported by bulkWrite");
                let op = operation[name];
                if (name === "insertOne") {
                    op = {document: global._withId(op.document)};
                    insertedIds[index] = op.document._id;
                }
                OPERATIONS[name](bulk, op);
            });
            const result = bulk.execute(writeConcern);
            if (!acknowledged(this, {writeConcern})) return {acknowledged: false};
            const upsertedIds = {};
            for (const entry of result.getUpsertedIds()) upsertedIds[entry.index] = entry._id;
            return {
                acknowledged: true, deletedCount: result.nRemoved, insertedCount: result.nInserted, matchedCount: result.nMatched,
                modifiedCount: result.nModified, upsertedCount: result.nUpserted, insertedIds, upsertedIds,
            };
        },
        /** The number of matching documents, counted by a pipeline. */
        countDocuments(filter, options = {}) {
            const {skip, limit, ...rest} = options;
            const pipeline = [{$match: filter === undefined ? {} : filter}];
            if (skip) pipeline.push({$skip: skip});
            if (limit) pipeline.push({$limit: limit});
            pipeline.push({$group: {_id: null, n: {$sum: 1}}});
            const [counted] = this.aggregate(pipeline, rest).toArray();
            return counted === undefined ? 0 : Number(counted.n);
        },
        estimatedDocumentCount(options = {}) {
            const command = Object.assign({count: this.getName()}, global._definedOptions(options));
            const reply = this.getDB().runReadCommand(command);
            _checkedReply(reply, "Error while counting estimated documents");
            return Number(reply.n);
        },
    });
})(globalThis);
