// A query: what `find` returns. Modifiers change it until its first document is asked for; then it becomes a find
// command, and its documents come from the command's cursor. The constructor, with access by index (`cursor[3]`), is native.
(function (global) {
    "use strict";

    const OPTION = {tailable: 2, slaveOk: 4, secondaryOk: 4, oplogReplay: 8, noTimeout: 16, awaitData: 32, exhaust: 64, partial: 128};
    const SHOWN_AT_ONCE = 20;

    DBQuery.Option = OPTION;
    DBQuery.shellBatchSize = SHOWN_AT_ONCE;
    DBQuery.prettyShell = false;

    const define = methods => global._defineMethods(DBQuery.prototype, methods);

    // Modifiers.

    /** A method that sets a field of the find command. */
    function modifier(name, value = given => given) {
        return function (given) {
            return this._set(name, value(given));
        };
    }

    define({
        _takeDefaults() {
            this._fieldsOfCommand = {};
            this._cursor = null;
            this._numReturned = 0;
            this._readPreference = undefined;
        },
        _checkModify() {
            if (this._cursor) throw new Error("query already executed");
        },
        _set(name, value) {
            this._checkModify();
            this._fieldsOfCommand[name] = value;
            return this;
        },
        sort: modifier("sort"),
        hint: modifier("hint"),
        min: modifier("min"),
        max: modifier("max"),
        comment: modifier("comment"),
        collation: modifier("collation"),
        maxTimeMS: modifier("maxTimeMS"),
        let: modifier("let"),
        returnKey: modifier("returnKey", given => given === undefined ? true : given),
        showRecordId: modifier("showRecordId", given => given === undefined ? true : given),
        showDiskLoc: modifier("showRecordId", () => true),
        allowDiskUse: modifier("allowDiskUse", given => given === undefined ? true : given),
        rawData: modifier("rawData", given => given === undefined ? true : given),
        limit(count) {
            this._checkModify();
            this._limit = Number(count);
            return this;
        },
        skip(count) {
            this._checkModify();
            this._skip = Number(count);
            return this;
        },
        batchSize(count) {
            this._checkModify();
            this._batchSize = Number(count);
            this._batchSizeGiven = true;
            return this;
        },
        projection(fields) {
            this._checkModify();
            this._fields = fields;
            return this;
        },
        readConcern(level, atClusterTime) {
            const concern = Object.assign({level}, atClusterTime === undefined ? {} : {atClusterTime});
            return this._set("readConcern", concern);
        },
        readPref(mode, tagSet, hedge) {
            this._checkModify();
            this._readPreference = global._readPreference(mode, tagSet, hedge);
            return this;
        },
        addOption(bits) {
            this._checkModify();
            this._options |= bits;
            return this;
        },
        /** Sets, or with `false` takes back, one of the flags of cursors by its name. */
        addCursorFlag(name, value = true) {
            const flags = {tailable: OPTION.tailable, awaitData: OPTION.awaitData, oplogReplay: OPTION.oplogReplay,
                noCursorTimeout: OPTION.noTimeout, exhaust: OPTION.exhaust, partial: OPTION.partial};
            if (!Object.prototype.hasOwnProperty.call(flags, name)) throw new Error("unknown cursor flag " + tojson(name));
            if (value) return this.addOption(flags[name]);
            this._checkModify();
            this._options &= ~flags[name];
            return this;
        },
        tailable(awaitData) {
            return this.addOption(OPTION.tailable | (awaitData === undefined || awaitData ? OPTION.awaitData : 0));
        },
        noCursorTimeout() {
            return this.addOption(OPTION.noTimeout);
        },
        allowPartialResults() {
            return this.addOption(OPTION.partial);
        },
        oplogReplay() {
            return this.addOption(OPTION.oplogReplay);
        },
        /** A modifier in its spelling of the old wire protocol. */
        _addSpecial(name, value) {
            const known = {$orderby: "sort", $showDiskLoc: "showRecordId"};
            return this._set(known[name] || name.replace(/^\$/, ""), value);
        },
        addSpecial(name, value) {
            return this._addSpecial(name, value);
        },
        modifiers() {
            return this;
        },
        pretty() {
            this._prettyShell = true;
            return this;
        },
        clone() {
            const copy = new DBQuery(this._mongo, this._db, this._collection, this._ns, this._query, this._fields, this._limit,
                this._skip, this._batchSize, this._options);
            copy._takeDefaults();
            Object.assign(copy._fieldsOfCommand, this._fieldsOfCommand);
            copy._readPreference = this._readPreference;
            copy._batchSizeGiven = this._batchSizeGiven;
            return copy;
        },
    });

    // Commands.

    /** The query itself, out of the wrapping that the old protocol had for modifiers. */
    function unwrapped(query) {
        const inner = query.$query === undefined ? query.query : query.$query;
        const wrapped = query.$query !== undefined || inner !== undefined && Object.keys(query).some(name => name.startsWith("$"));
        if (!wrapped || typeof inner !== "object") return {filter: query, modifiers: {}};
        const {$orderby, orderby, $hint, $comment, $min, $max, $maxTimeMS, $returnKey, $showDiskLoc} = query;
        const modifiers = {sort: $orderby || orderby, hint: $hint, comment: $comment, min: $min, max: $max,
            maxTimeMS: $maxTimeMS, returnKey: $returnKey, showRecordId: $showDiskLoc};
        return {filter: inner, modifiers: global._definedOptions(modifiers)};
    }

    define({
        _limits() {
            const limits = {};
            if (this._skip) limits.skip = this._skip;
            // A negative number asks for that many at most, in one batch.
            const single = this._limit < 0 || this._limit === 0 && this._batchSize < 0;
            const limit = Math.abs(this._limit || (this._batchSize < 0 ? this._batchSize : 0));
            if (limit) limits.limit = limit;
            if (single) limits.singleBatch = true;
            if (this._batchSize > 0 || this._batchSizeGiven && this._batchSize === 0) limits.batchSize = this._batchSize;
            return limits;
        },
        _flags() {
            const flags = {};
            for (const [name, field] of [["tailable", "tailable"], ["awaitData", "awaitData"], ["noTimeout", "noCursorTimeout"],
                ["partial", "allowPartialResults"], ["oplogReplay", "oplogReplay"]]) {
                if (this._options & OPTION[name]) flags[field] = true;
            }
            return flags;
        },
        /** The find command this query stands for. */
        _convertToCommand() {
            const {filter, modifiers} = unwrapped(this._query);
            const command = {find: this._collection.getName(), filter};
            const {sort, hint, ...rest} = Object.assign(modifiers, this._fieldsOfCommand);
            if (sort !== undefined) command.sort = sort;
            if (this._fields !== undefined && this._fields !== null) command.projection = projectionOf(this._fields);
            if (hint !== undefined) command.hint = hint;
            return Object.assign(command, this._limits(), rest, this._flags());
        },
        _send(command) {
            return this._readPreference === undefined ? this._db.runReadCommand(command) :
                this._db._send(command, undefined, this._readPreference);
        },
        _exec() {
            if (this._cursor) return this._cursor;
            const command = this._convertToCommand();
            // With awaitData the time limit is how long a getMore waits, not how long the query may take.
            const waits = command.tailable && command.awaitData;
            const reply = this._send(command);
            _checkedReply(reply, "error");
            this._cursor = new DBCommandCursor(this._db, reply, this._batchSize > 0 ? this._batchSize : undefined,
                waits ? command.maxTimeMS : undefined);
            return this._cursor;
        },
        _takeCountOptions(options) {
            for (const name of ["limit", "skip"]) if (options[name] !== undefined) this[name](options[name]);
            for (const name of ["hint", "maxTimeMS", "collation", "comment", "readConcern"])
                if (options[name] !== undefined) this._set(name, options[name]);
        },
        /** The number of matching documents by the count command; `applyLimits` heeds skip and limit. */
        count(applyLimits) {
            const command = this._convertToCountCommand(applyLimits);
            const reply = this._send(command);
            _checkedReply(reply, "count failed");
            return Number(reply.n);
        },
        _convertToCountCommand(applyLimits) {
            const {filter, modifiers} = unwrapped(this._query);
            const command = {count: this._collection.getName(), query: filter};
            const fields = Object.assign(modifiers, this._fieldsOfCommand);
            for (const name of ["hint", "maxTimeMS", "collation", "comment", "readConcern", "rawData"])
                if (fields[name] !== undefined) command[name] = fields[name];
            if (applyLimits && this._limit) command.limit = this._limit;
            if (applyLimits && this._skip) command.skip = this._skip;
            return command;
        },
        size() {
            return this.count(true);
        },
        explain(verbosity) {
            return new DBExplainQuery(this, global._explainVerbosity(verbosity)).finish();
        },
    });

    function projectionOf(fields) {
        if (!Array.isArray(fields)) return fields;
        const projection = {};
        for (const name of fields) projection[name] = 1;
        return fields.length ? projection : {_id: 1};
    }

    // Documents.

    define({
        hasNext() {
            const cursor = this._exec();
            // A limit the server does not know of: a document of a batch that was sent before a limit applied.
            if (this._limit > 0 && this._numReturned >= this._limit) {
                cursor.close();
                return false;
            }
            return cursor.hasNext();
        },
        next() {
            if (!this.hasNext()) throw new Error("error hasNext: false");
            const document = this._cursor.next();
            this._numReturned++;
            return document;
        },
        /** The next document; null when none is there yet. */
        tryNext() {
            return this.hasNext() ? this.next() : null;
        },
        objsLeftInBatch() {
            return this._exec().objsLeftInBatch();
        },
        getId() {
            return this._exec().getId();
        },
        getClusterTime() {
            return this._exec().getClusterTime();
        },
        getResumeToken() {
            return this._exec().getResumeToken();
        },
        isExhausted() {
            return this._exec().isExhausted();
        },
        isClosed() {
            return this._exec().isClosed();
        },
        close() {
            if (this._cursor) this._cursor.close();
        },
        readOnly() {
            this._exec();
            return this;
        },
        toArray() {
            if (this._documents) return this._documents;
            const documents = [];
            while (this.hasNext()) documents.push(this.next());
            this._documents = documents;
            return documents;
        },
        arrayAccess(index) {
            return this.toArray()[index];
        },
        length() {
            return this.toArray().length;
        },
        itcount() {
            let count = 0;
            for (; this.hasNext(); count++) this.next();
            return count;
        },
        countReturn() {
            const count = this.count();
            const rest = Math.max(0, count - this._skip);
            return this._limit > 0 && this._limit < rest ? this._limit : rest;
        },
        forEach(func) {
            while (this.hasNext()) func(this.next());
        },
        map(func) {
            const results = [];
            while (this.hasNext()) results.push(func(this.next()));
            return results;
        },
        toString() {
            return "DBQuery: " + this._ns + " -> " + tojson(this._query);
        },
        tojson() {
            return this.toString();
        },
        shellPrint() {
            global._printDocuments(this, this._prettyShell || DBQuery.prettyShell);
        },
    });
    Object.defineProperty(DBQuery.prototype, Symbol.iterator, {
        * value() {
            while (this.hasNext()) yield this.next();
        },
        writable: true, configurable: true, enumerable: false,
    });
})(globalThis);
