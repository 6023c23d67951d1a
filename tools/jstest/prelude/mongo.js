// A connection: databases, defaults for reads and writes made through it, its logical clock and its sessions. The
// socket work (`runCommand`, `auth`, `close`, ...) is native.
(function (global) {
    "use strict";

    // Commands and databases.

    global._defineMethods(Mongo.prototype, {
        getDB(name) {
            return new DB(this, String(name));
        },
        adminCommand(command) {
            return this.getDB("admin").runCommand(command);
        },
        /** The reply of listDatabases, thrown as an error when it failed. */
        getDBs(session, filter, nameOnly, authorizedDatabases) {
            const command = {listDatabases: 1};
            if (filter !== undefined) command.filter = filter;
            if (nameOnly !== undefined) command.nameOnly = nameOnly;
            if (authorizedDatabases !== undefined) command.authorizedDatabases = authorizedDatabases;
            const used = session || this._getDefaultSession();
            const reply = used.getDatabase("admin").runReadCommand(command);
            return _checkedReply(reply, "listDatabases failed");
        },
        getDBNames() {
            return this.getDBs(undefined, undefined, true).databases.map(database => database.name);
        },
        getCollection(namespace) {
            const dot = namespace.indexOf(".");
            if (dot < 0) throw new Error("need a collection's full name (database.collection), found " + namespace);
            return this.getDB(namespace.slice(0, dot)).getCollection(namespace.slice(dot + 1));
        },
        watch(pipeline, options) {
            return this.getDB("admin")._watch(pipeline, options, {allChangesForCluster: true});
        },
        getLogComponents(session) {
            const admin = (session || this._getDefaultSession()).getDatabase("admin");
            const reply = admin.runCommand({getParameter: 1, logComponentVerbosity: 1});
            _checkedReply(reply, "getLogComponents failed");
            return reply.logComponentVerbosity;
        },
        setLogLevel(level, component, session) {
            if (component !== undefined && typeof component !== "string")
                throw new Error("setLogLevel component must be a string:" + tojson(component));
            // "storage.journal" is the journal's verbosity inside that of the storage.
            const path = component ? component.toLowerCase().split(".") : [];
            const verbosity = path.reduceRight((inner, name) => ({[name]: inner}), {verbosity: level});
            const admin = (session || this._getDefaultSession()).getDatabase("admin");
            const reply = admin.runCommand({setParameter: 1, logComponentVerbosity: verbosity});
            return _checkedReply(reply, "setLogLevel failed");
        },
        toString() {
            return "connection to " + this.host;
        },
        tojson() {
            return this.toString();
        },
        shellPrint() {
            print(this.toString());
        },
    });

    // Modes of an age with two protocols: only commands are left.

    function commandsOnly(kind) {
        return function (mode) {
            if (mode !== "commands") throw new Error("only the commands " + kind + " mode exists, asked for " + mode);
        };
    }

    global._defineMethods(Mongo.prototype, {
        hasWriteCommands: () => true,
        hasExplainCommand: () => true,
        useWriteCommands: () => true,
        useReadCommands: () => true,
        writeMode: () => "commands",
        readMode: () => "commands",
        forceWriteMode: commandsOnly("write"),
        setWriteMode: commandsOnly("write"),
        forceReadMode: commandsOnly("read"),
        setReadMode: commandsOnly("read"),
    });

    // Defaults of reads.

    const MODES = ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];

    function modeNamed(name) {
        const mode = MODES.find(known => known.toLowerCase() === String(name).toLowerCase());
        if (!mode) throw new Error("Invalid read preference mode: " + name);
        return mode;
    }

    /** A read preference document from its parts, checked as drivers check it. */
    global._readPreference = function (mode, tagSet, hedge) {
        if (typeof mode === "object" && mode !== null) return global._readPreference(mode.mode, mode.tags, mode.hedge);
        const preference = {mode: modeNamed(mode)};
        if (tagSet !== undefined && tagSet !== null) {
            if (!Array.isArray(tagSet)) throw new Error("Read preference tags must be an array: " + tojson(tagSet));
            const meaningful = tagSet.some(tags => Object.keys(tags).length > 0);
            if (preference.mode === "primary" && meaningful) throw new Error("Can not supply tagSet with readPref mode primary");
            preference.tags = tagSet;
        }
        if (hedge !== undefined) preference.hedge = hedge;
        return preference;
    };

    /** An option of the connection string, whatever its case; undefined without it. */
    function uriOption(connection, name) {
        const options = connection.fullOptions || {};
        const key = Object.keys(options).find(known => known.toLowerCase() === name.toLowerCase());
        return key === undefined ? undefined : options[key];
    }
    function uriWriteConcern(connection) {
        const concern = {};
        const [w, j, wtimeout] = ["w", "journal", "wtimeoutMS"].map(name => uriOption(connection, name));
        if (w !== undefined) concern.w = /^\d+$/.test(w) ? Number(w) : w;
        if (j !== undefined) concern.j = j === "true";
        if (wtimeout !== undefined) concern.wtimeout = Number(wtimeout);
        return Object.keys(concern).length ? new WriteConcern(concern) : undefined;
    }

    global._defineMethods(Mongo.prototype, {
        setReadPref(mode, tagSet, hedge) {
            this._readPref = global._readPreference(mode, tagSet, hedge);
        },
        getReadPref() {
            const mode = this._readPref === undefined ? uriOption(this, "readPreference") : undefined;
            if (mode !== undefined) this.setReadPref(mode);
            return this._readPref;
        },
        getReadPrefMode() {
            const preference = this.getReadPref();
            return preference ? preference.mode : undefined;
        },
        getReadPrefTagSet() {
            const preference = this.getReadPref();
            return preference ? preference.tags : undefined;
        },
        setReadConcern(level) {
            if (level === undefined || level === null || level === "") {
                this._readConcernLevel = undefined;
            } else if (["local", "majority", "linearizable", "snapshot", "available"].includes(level)) {
                this._readConcernLevel = level;
            } else {
                throw new TypeError("Invalid read concern.");
            }
        },
        getReadConcern() {
            return this._readConcernLevel === undefined ? uriOption(this, "readConcernLevel") : this._readConcernLevel;
        },
        setWriteConcern(concern) {
            this._writeConcern = concern instanceof WriteConcern ? concern : new WriteConcern(concern);
        },
        getWriteConcern() {
            if (this._writeConcern === undefined) this._writeConcern = uriWriteConcern(this) || null;
            return this._writeConcern || undefined;
        },
        unsetWriteConcern() {
            this._writeConcern = null;
        },
        /** Whether the connection string asks for writes to be retried; undefined when it does not say. */
        _retriesWrites() {
            const option = uriOption(this, "retryWrites");
            return option === undefined ? undefined : option === "true";
        },
        setSecondaryOk(value = true) {
            this.secondaryOk = value;
            this.slaveOk = value;
        },
        setSlaveOk(value = true) {
            this.setSecondaryOk(value);
        },
        getSecondaryOk() {
            return this.secondaryOk || this.slaveOk || false;
        },
        getSlaveOk() {
            return this.getSecondaryOk();
        },
        /** The preference that commands of this connection carry; undefined for the primary. */
        _readPreferenceToSend() {
            const preference = this.getReadPref();
            if (preference && preference.mode !== "primary") return preference;
            return this.getSecondaryOk() ? {mode: "secondaryPreferred"} : undefined;
        },
    });

    // The logical clock.

    global._defineMethods(Mongo.prototype, {
        setCausalConsistency(value = true) {
            this._causalConsistency = value;
        },
        isCausalConsistencyEnabled() {
            return Boolean(this._causalConsistency);
        },
        isCausalConsistency() {
            return Boolean(this._causalConsistency);
        },
        getClusterTime() {
            return this._clusterTime;
        },
        advanceClusterTime(time) {
            if (!time || time.clusterTime === undefined)
                throw new Error("missing clusterTime field in: " + tojson(time));
            if (this._clusterTime === undefined || bsonWoCompare({_: time.clusterTime}, {_: this._clusterTime.clusterTime}) > 0)
                this._clusterTime = time;
        },
        resetClusterTime_forTesting() {
            delete this._clusterTime;
        },
        /** Waits until the servers' clock has reached a time this connection has been told. */
        waitForClusterTime(time, timeoutMs = 10 * 60 * 1000) {
            assert.soon(() => {
                this.adminCommand({ping: 1});
                const known = this.getClusterTime();
                return known !== undefined && timestampCmp(known.clusterTime, time) >= 0;
            }, () => "the cluster time did not reach " + tojson(time), timeoutMs);
        },
    });

    // Sessions.

    function implicitSessionsWanted(connection) {
        if (typeof TestData === "object" && TestData && TestData.disableImplicitSessions) return false;
        if (connection._implicitSessions !== undefined) return connection._implicitSessions;
        return typeof _shouldUseImplicitSessions !== "function" || _shouldUseImplicitSessions();
    }

    global._defineMethods(Mongo.prototype, {
        startSession(options = {}) {
            const defaults = {
                causalConsistency: options.causalConsistency === undefined ? true : options.causalConsistency,
            };
            return new DriverSession(this, Object.assign({}, options, defaults));
        },
        /** The session of commands that name none: an implicit one, or none at all when those are switched off. */
        _getDefaultSession() {
            if (this._defaultSession === undefined) {
                this._setDefaultSession(new DriverSession(this, {causalConsistency: false},
                    implicitSessionsWanted(this) ? "implicit" : "none"));
            }
            return this._defaultSession;
        },
        _setDefaultSession(session) {
            Object.defineProperty(this, "_defaultSession", {value: session, writable: true, configurable: true, enumerable: false});
        },
    });
})(globalThis);
