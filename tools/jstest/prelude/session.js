// Sessions: what is added to a command before it is sent, and what is learned from its reply.
//
//     db.runCommand -> session.run(database, command)
//         lsid, $clusterTime, read concern and afterClusterTime      always, as far as they apply
//         txnNumber                                                  a retryable write
//         txnNumber, autocommit, startTransaction                    a statement of a transaction
//       -> connection.runCommand (native)                            once more after a retryable error
//       <- $clusterTime, operationTime, recoveryToken
//
// A connection without a session of its own has an implicit one; `--disableImplicitSessions` makes that one add nothing.
(function (global) {
    "use strict";

    const READ_COMMANDS = new Set(["aggregate", "count", "distinct", "find", "geoNear", "geoSearch", "mapReduce", "mapreduce",
        "parallelCollectionScan", "dbHash", "explain"]);
    const AFTER_CLUSTER_TIME_COMMANDS = new Set(["aggregate", "count", "distinct", "find", "geoNear", "geoSearch",
        "parallelCollectionScan", "dbHash"]);
    const WRITE_COMMANDS = new Set(["insert", "update", "delete", "findAndModify", "findandmodify", "bulkWrite"]);
    // Sent before a server would know of a session, or about the connection itself.
    const SESSIONLESS_COMMANDS = new Set(["hello", "isMaster", "ismaster", "saslStart", "saslContinue", "authenticate",
        "getnonce", "logout", "copydbgetnonce", "copydbsaslstart"]);

    const commandName = command => Object.keys(command)[0];

    // Options.

    /** What a session was started with, the connection's defaults below. */
    class SessionOptions {
        constructor(options, client) {
            this._options = options || {};
            Object.defineProperty(this, "_client", {value: client, enumerable: false});
        }

        getReadPreference() {
            return this._options.readPreference;
        }

        setReadPreference(preference) {
            this._options.readPreference = preference;
        }

        getReadConcern() {
            return this._options.readConcern;
        }

        setReadConcern(concern) {
            this._options.readConcern = concern;
        }

        getWriteConcern() {
            return this._options.writeConcern;
        }

        setWriteConcern(concern) {
            this._options.writeConcern = concern instanceof WriteConcern ? concern : new WriteConcern(concern);
        }

        isCausalConsistency() {
            return Boolean(this._options.causalConsistency);
        }

        shouldRetryWrites() {
            if (this._options.retryWrites !== undefined) return Boolean(this._options.retryWrites);
            const asked = this._client._retriesWrites();
            return asked === undefined ? Boolean(_shouldRetryWrites()) : asked;
        }

        tojson(indent, nolint, depth) {
            return tojsonObject(this._options, indent, nolint, depth);
        }

        toString() {
            return "SessionOptions(" + tojson(this._options) + ")";
        }
    }

    // The server's side of a session.

    const TXN = {none: "inactive", starting: "starting", active: "active", committed: "committed", aborted: "aborted"};

    /** A session's identity and numbers, which its native handle keeps, and the state of its transaction. */
    class ServerSession {
        constructor(client) {
            this.handle = client._startSession({});
            this._state = TXN.none;
            this._txnOptions = undefined;
            this._recoveryToken = undefined;
            this._unsent = false;
        }

        getTxnNumber() {
            return this.handle.getTxnNumber();
        }

        setTxnNumber(number) {
            this.handle.setTxnNumber(number instanceof NumberLong ? number : NumberLong(Number(number)));
        }

        nextTxnNumber() {
            this.handle.incrementTxnNumber();
            return this.handle.getTxnNumber();
        }

        isTxnActive() {
            return this._state === TXN.starting || this._state === TXN.active;
        }

        isFirstStatement() {
            return this._state === TXN.starting;
        }

        begin(options) {
            this.nextTxnNumber();
            this._txnOptions = options;
            this._unsent = false;
            this._recoveryToken = undefined;
            this._state = TXN.starting;
        }
    }

    // Which writes may be repeated.

    function allStatements(list, holds) {
        return Array.isArray(list) && list.every(holds);
    }

    /** Whether the server would apply this write at most once when it is sent twice under one number. */
    function isRetryableWrite(command) {
        const concern = command.writeConcern;
        if (concern && Number(concern.w) === 0) return false;
        switch (commandName(command)) {
            case "insert":
            case "findAndModify":
            case "findandmodify":
                return true;
            case "update":
                return allStatements(command.updates, update => !update.multi);
            case "delete":
                return allStatements(command.deletes, deletion => Number(deletion.limit) === 1);
            case "bulkWrite":
                return allStatements(command.ops, op => !op.multi);
            default:
                return false;
        }
    }

    function isRetryableReply(reply) {
        const labels = reply.errorLabels;
        if (Array.isArray(labels) && labels.includes("RetryableWriteError")) return true;
        if (!reply.ok && isRetryableError(reply)) return true;
        return Boolean(reply.writeConcernError && isRetryableError(reply.writeConcernError));
    }

    /** A set's member or a router: a standalone server takes no numbers of transactions. */
    function acceptsTransactionNumbers(client) {
        if (client._acceptsTxnNumbers === undefined) {
            const hello = client.runCommand("admin", {hello: 1}, 0);
            Object.defineProperty(client, "_acceptsTxnNumbers", {
                value: Boolean(hello.setName || hello.msg === "isdbgrid"), writable: true, configurable: true, enumerable: false,
            });
        }
        return client._acceptsTxnNumbers;
    }

    // Sessions.

    class DriverSession {
        /** `kind` is "explicit", "implicit" (made by the connection), or "none" (adds nothing to commands). */
        constructor(client, options, kind = "explicit") {
            this._client = client;
            this._options = new SessionOptions(options, client);
            this._kind = kind;
            this._serverSession = new ServerSession(client);
            this._ended = false;
            this._operationTime = undefined;
            this._clusterTime = undefined;
            this._used = false;
        }

        getClient() {
            return this._client;
        }

        getOptions() {
            return this._options;
        }

        getSessionId() {
            return this._serverSession.handle.getId();
        }

        _getSessionAwareClient() {
            return {runCommand: (session, database, command, options) => session.run(database, command, options)};
        }

        getTxnNumber_forTesting() {
            return this._serverSession.getTxnNumber();
        }

        setTxnNumber_forTesting(number) {
            this._serverSession.setTxnNumber(number);
        }

        getTxnWriteConcern_forTesting() {
            const options = this._serverSession._txnOptions;
            return options ? options.writeConcern : undefined;
        }

        getOperationTime() {
            return this._operationTime;
        }

        advanceOperationTime(time) {
            if (!(time instanceof Timestamp)) throw new Error("an operation time is a Timestamp, found " + tojson(time));
            if (this._operationTime === undefined || timestampCmp(time, this._operationTime) > 0) this._operationTime = time;
        }

        resetOperationTime_forTesting() {
            this._operationTime = undefined;
        }

        getClusterTime() {
            return this._clusterTime;
        }

        advanceClusterTime(time) {
            if (!time || time.clusterTime === undefined) throw new Error("missing clusterTime field in: " + tojson(time));
            if (this._clusterTime === undefined || timestampCmp(time.clusterTime, this._clusterTime.clusterTime) > 0)
                this._clusterTime = time;
        }

        resetClusterTime_forTesting() {
            this._clusterTime = undefined;
        }

        getDatabase(name) {
            const database = this._client.getDB(name);
            database._session = this;
            return database;
        }

        hasEnded() {
            return this._ended;
        }

        /** Aborts an open transaction and tells the server to forget the session; a second call does nothing. */
        endSession() {
            if (this._ended) return;
            if (this._serverSession.isTxnActive()) executeQuietly(() => this.abortTransaction_forTesting());
            this._ended = true;
            if (this._used && this._kind !== "none")
                executeQuietly(() => this._client.runCommand("admin", {endSessions: [this.getSessionId()]}, 0));
        }

        toString() {
            return "session " + tojson(this.getSessionId());
        }

        tojson() {
            return this.toString();
        }

        shellPrint() {
            print(this.toString());
        }

        // Sending.

        /** Sends a command with what the session adds to it; returns the reply, and throws when the connection breaks. */
        run(database, command, options) {
            if (this._ended) throw new Error("Cannot use a session that has ended");
            const numbered = this._numberWrite(command);
            const prepared = this._prepare(numbered);
            const reply = numbered !== command ? this._sendRetryably(database, prepared, options) : this._send(database, prepared, options);
            this._learn(prepared, reply);
            return reply;
        }

        _send(database, command, options) {
            this._used = true;
            const reply = this._client.runCommand(database, command, options === undefined ? 0 : options);
            attach(reply, "_commandObj", command);
            attach(reply, "_mongo", this._client);
            return reply;
        }

        _sendRetryably(database, command, options) {
            let reply;
            try {
                reply = this._send(database, command, options);
                if (!isRetryableReply(reply)) return reply;
                logRetry(command, reply.errmsg || tojsononeline(reply.writeConcernError));
            } catch (error) {
                if (!isNetworkError(error)) throw error;
                logRetry(command, error.message);
            }
            return this._send(database, command, options);
        }

        /** The command under a new transaction number when it is a retryable write; otherwise itself. */
        _numberWrite(command) {
            if (this._kind === "none" || this._serverSession.isTxnActive() || !this._options.shouldRetryWrites()) return command;
            if (command.txnNumber !== undefined || !isRetryableWrite(command) || !acceptsTransactionNumbers(this._client)) return command;
            return Object.assign({}, command, {txnNumber: this._serverSession.nextTxnNumber()});
        }

        /** A copy of the command with everything the session adds; what the test itself wrote stays. */
        _prepare(command) {
            const name = commandName(command);
            const sent = Object.assign({}, command);
            if (this._kind !== "none" && sent.lsid === undefined && !SESSIONLESS_COMMANDS.has(name)) sent.lsid = this.getSessionId();
            const time = newest(this._client.getClusterTime(), this._clusterTime);
            if (time !== undefined && sent.$clusterTime === undefined) sent.$clusterTime = time;
            if (this._serverSession.isTxnActive() && this._kind === "explicit") return this._prepareStatement(sent);
            this._addReadConcern(name, sent);
            return sent;
        }

        _addReadConcern(name, sent) {
            if (!READ_COMMANDS.has(name) || sent.txnNumber !== undefined && sent.autocommit !== undefined) return;
            const inherited = this._options.getReadConcern() || levelOf(this._client.getReadConcern());
            if (sent.readConcern === undefined && inherited !== undefined && name !== "explain") sent.readConcern = inherited;
            this._addAfterClusterTime(name, sent);
        }

        _addAfterClusterTime(name, sent) {
            const causal = this._options.isCausalConsistency() || this._client.isCausalConsistency();
            if (!causal || this._operationTime === undefined || !AFTER_CLUSTER_TIME_COMMANDS.has(name)) return;
            const concern = sent.readConcern || {};
            if (concern.afterClusterTime !== undefined || concern.atClusterTime !== undefined) return;
            if (concern.level === "available") return;
            sent.readConcern = Object.assign({}, concern, {afterClusterTime: this._operationTime});
        }

        _prepareStatement(sent) {
            const server = this._serverSession;
            if (sent.txnNumber === undefined) sent.txnNumber = server.getTxnNumber();
            if (sent.autocommit === undefined) sent.autocommit = false;
            if (!server.isFirstStatement()) return sent;
            if (sent.startTransaction === undefined) sent.startTransaction = true;
            const concern = Object.assign({}, sent.readConcern || server._txnOptions.readConcern);
            const causal = this._options.isCausalConsistency() && this._operationTime !== undefined;
            if (causal && concern.afterClusterTime === undefined && concern.atClusterTime === undefined)
                concern.afterClusterTime = this._operationTime;
            if (Object.keys(concern).length) sent.readConcern = concern;
            return sent;
        }

        _learn(sent, reply) {
            if (reply.$clusterTime !== undefined) {
                this._client.advanceClusterTime(reply.$clusterTime);
                this.advanceClusterTime(reply.$clusterTime);
            }
            if (reply.operationTime !== undefined) this.advanceOperationTime(reply.operationTime);
            const server = this._serverSession;
            if (sent.autocommit === undefined || !server.isTxnActive()) return;
            if (reply.recoveryToken !== undefined) server._recoveryToken = reply.recoveryToken;
            server._state = TXN.active;
        }

        processCommandResponse_forTesting(reply) {
            this._learn({}, reply);
        }

        // Transactions.

        startTransaction(options = {}) {
            this.startTransaction_forTesting(options);
        }

        /** `ignoreActiveTxn` begins the next transaction although the test has not ended the last one. */
        startTransaction_forTesting(options = {}, {ignoreActiveTxn} = {}) {
            if (this._serverSession.isTxnActive() && !ignoreActiveTxn)
                throw new Error("Transaction already in progress on this session.");
            this._serverSession.begin({
                readConcern: options.readConcern || this._options.getReadConcern() || levelOf(this._client.getReadConcern()),
                writeConcern: options.writeConcern || plainConcern(this._options.getWriteConcern() || this._client.getWriteConcern()),
                readPreference: options.readPreference,
            });
        }

        commitTransaction() {
            this._throwUnlessWorked(this.commitTransaction_forTesting());
        }

        abortTransaction() {
            this._throwUnlessWorked(this.abortTransaction_forTesting());
        }

        _throwUnlessWorked(reply) {
            if (!reply.ok || reply.writeConcernError) throw _getErrorWithCode(reply, "command failed: " + tojson(reply));
        }

        /** The reply of commitTransaction; a committed transaction may be committed again. */
        commitTransaction_forTesting() {
            const server = this._serverSession;
            if (server._state === TXN.none) throw new Error("There is no active transaction to commit on this session.");
            if (server._state === TXN.aborted) throw new Error("Cannot call commitTransaction after calling abortTransaction.");
            return this._endTransaction("commitTransaction", TXN.committed);
        }

        abortTransaction_forTesting() {
            const server = this._serverSession;
            if (server._state === TXN.none) throw new Error("There is no active transaction to abort on this session.");
            if (server._state === TXN.aborted) throw new Error("Cannot call abortTransaction after calling abortTransaction.");
            if (server._state === TXN.committed) throw new Error("Cannot call abortTransaction after calling commitTransaction.");
            return this._endTransaction("abortTransaction", TXN.aborted);
        }

        // A transaction without a statement never reached the server, so that there is nothing to send.
        _endTransaction(name, state) {
            const server = this._serverSession;
            if (server.isFirstStatement() || server._unsent) {
                server._unsent = true;
                server._state = state;
                return {ok: 1};
            }
            const again = server._state === TXN.committed;
            server._state = state;
            try {
                return this._sendEnd(name, again);
            } finally {
                server._state = state;
            }
        }

        _sendEnd(name, again) {
            const server = this._serverSession;
            const command = {[name]: 1, txnNumber: server.getTxnNumber(), autocommit: false};
            if (server._recoveryToken !== undefined) command.recoveryToken = server._recoveryToken;
            const concern = server._txnOptions.writeConcern;
            if (concern !== undefined) command.writeConcern = concern;
            if (again) command.writeConcern = majority(concern);
            let reply;
            try {
                reply = this._runEnd(command);
                if (!isRetryableReply(reply)) return reply;
            } catch (error) {
                if (!isNetworkError(error)) throw error;
            }
            if (name === "commitTransaction") command.writeConcern = majority(concern);
            return this._runEnd(command);
        }

        _runEnd(command) {
            const prepared = this._prepare(command);
            const reply = this._send("admin", prepared, 0);
            this._learn(prepared, reply);
            return reply;
        }

        /** Runs `body(session)` in a transaction, again as drivers do when the server labels an error as transient. */
        withTransaction(body, options, timeoutMs = 120 * 1000) {
            const end = Date.now() + timeoutMs;
            for (;;) {
                this.startTransaction(options);
                try {
                    const result = body(this);
                    if (this._serverSession.isTxnActive()) this._commitUntilKnown(end);
                    return result;
                } catch (error) {
                    if (this._serverSession.isTxnActive()) executeQuietly(() => this.abortTransaction());
                    if (!hasLabel(error, "TransientTransactionError") || Date.now() > end) throw error;
                }
            }
        }

        _commitUntilKnown(end) {
            for (;;) {
                try {
                    return this.commitTransaction();
                } catch (error) {
                    if (!hasLabel(error, "UnknownTransactionCommitResult") || Date.now() > end) throw error;
                }
            }
        }
    }

    const hasLabel = (error, label) => Array.isArray(error.errorLabels) && error.errorLabels.includes(label);
    const majority = concern => Object.assign({wtimeout: 10000}, concern, {w: "majority"});
    const levelOf = level => level === undefined ? undefined : {level};
    const plainConcern = concern => concern instanceof WriteConcern ? concern.toJSON() : concern;

    function newest(first, second) {
        if (first === undefined || second === undefined) return first === undefined ? second : first;
        return timestampCmp(first.clusterTime, second.clusterTime) >= 0 ? first : second;
    }

    // What is sent at the end of a session is a courtesy: its failure is nobody's error.
    function executeQuietly(func) {
        try {
            return func();
        } catch (error) {
            return undefined;
        }
    }

    function attach(reply, name, value) {
        if (reply === null || typeof reply !== "object") return;
        Object.defineProperty(reply, name, {value, writable: true, configurable: true, enumerable: false});
    }

    function logRetry(command, reason) {
        if (jsTestOptions().logRetryAttempts)
            print("Retrying " + commandName(command) + " due to a retryable error: " + reason);
    }

    global._isWriteCommand = command => WRITE_COMMANDS.has(commandName(command));
    global._isReadCommand = command => READ_COMMANDS.has(commandName(command));
    global.SessionOptions = SessionOptions;
    global.DriverSession = DriverSession;
})(globalThis);
