// A cursor over a command's reply: its first batch, then getMore until the server says it is exhausted. Change streams
// and tailable cursors may have an empty batch and stay open: `hasNext` asks the server once, `isExhausted` tells more.
(function (global) {
    "use strict";

    const isOpen = id => id !== undefined && id !== null && Number(id) !== 0;
    const asLong = id => typeof id === "number" ? NumberLong(String(id)) : id;

    /** Splits "database.collection" at its first dot. */
    function parts(namespace) {
        const dot = namespace.indexOf(".");
        return [namespace.slice(0, dot), namespace.slice(dot + 1)];
    }

    class DBCommandCursor {
        /** `database` may be a connection; a reply that is not ok is thrown as an error. */
        constructor(database, reply, batchSize, maxAwaitTimeMS, txnNumber) {
            _checkedReply(reply, "error");
            const cursor = reply.cursor;
            if (cursor === undefined) throw new Error("the reply has no cursor: " + tojson(reply));
            this._batch = cursor.firstBatch;
            this._at = 0;
            this._cursorid = asLong(cursor.id);
            this._ns = cursor.ns;
            const [home, collection] = parts(cursor.ns || "");
            this._collName = collection;
            this._batchSize = batchSize;
            this._maxAwaitTimeMS = maxAwaitTimeMS;
            this._txnNumber = txnNumber;
            this._closed = false;
            this._db = database instanceof Mongo ? database.getDB(home) :
                home && home !== database.getName() ? database.getSiblingDB(home) : database;
            this._resumeToken = cursor.postBatchResumeToken;
            this._atClusterTime = cursor.atClusterTime;
        }

        getId() {
            return this._cursorid;
        }

        getMongo() {
            return this._db.getMongo();
        }

        getClusterTime() {
            return this._atClusterTime;
        }

        /** Where a change stream would go on after what has been handed out. */
        getResumeToken() {
            return this._resumeToken;
        }

        /** The next document; null when none is there yet. */
        tryNext() {
            return this.hasNext() ? this.next() : null;
        }

        objsLeftInBatch() {
            return this._batch.length - this._at;
        }

        isClosed() {
            return this._closed || !isOpen(this._cursorid);
        }

        isExhausted() {
            return this.objsLeftInBatch() === 0 && this.isClosed();
        }

        hasNext() {
            if (this._at >= this._batch.length && !this.isClosed()) this._getMore();
            return this._at < this._batch.length;
        }

        next() {
            if (!this.hasNext()) throw new Error("error hasNext: false");
            const document = this._batch[this._at];
            this._batch[this._at++] = undefined;
            return document;
        }

        _getMore() {
            const command = {getMore: this._cursorid, collection: this._collName};
            if (this._batchSize) command.batchSize = this._batchSize;
            if (this._maxAwaitTimeMS !== undefined && this._maxAwaitTimeMS !== null) command.maxTimeMS = this._maxAwaitTimeMS;
            if (this._txnNumber !== undefined) Object.assign(command, {txnNumber: NumberLong(String(this._txnNumber)), autocommit: false});
            const reply = this._db.runCommand(command);
            _checkedReply(reply, "getMore command failed");
            this._batch = reply.cursor.nextBatch;
            this._at = 0;
            this._cursorid = asLong(reply.cursor.id);
            if (reply.cursor.postBatchResumeToken !== undefined) this._resumeToken = reply.cursor.postBatchResumeToken;
        }

        /** Lets the server forget the cursor; what is left of the batch stays. */
        close() {
            if (!this.isClosed()) this._db.runCommand({killCursors: this._collName, cursors: [this._cursorid]});
            this._closed = true;
        }

        toArray() {
            const documents = [];
            while (this.hasNext()) documents.push(this.next());
            return documents;
        }

        forEach(func) {
            while (this.hasNext()) func(this.next());
        }

        map(func) {
            const results = [];
            while (this.hasNext()) results.push(func(this.next()));
            return results;
        }

        itcount() {
            let count = 0;
            for (; this.hasNext(); count++) this.next();
            return count;
        }

        pretty() {
            this._pretty = true;
            return this;
        }

        * [Symbol.iterator]() {
            while (this.hasNext()) yield this.next();
        }

        shellPrint() {
            global._printDocuments(this, this._pretty);
        }

        toString() {
            return "DBCommandCursor: " + this._ns;
        }

        tojson() {
            return this.toString();
        }
    }
    global.DBCommandCursor = DBCommandCursor;

    /** Prints the next documents of a cursor, as an interactive shell does. */
    global._printDocuments = function (cursor, pretty) {
        for (let printed = 0; printed < 20 && cursor.hasNext(); printed++) {
            const document = cursor.next();
            print(pretty ? tojson(document) : tojsononeline(document));
        }
        if (cursor.hasNext()) print("Type \"it\" for more");
    };
})(globalThis);
