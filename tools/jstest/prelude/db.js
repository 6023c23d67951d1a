// A database: commands, collections, users, and what the server tells about itself.
(function (global) {
    "use strict";

    const define = methods => global._defineMethods(DB.prototype, methods);

    // Names and relatives.

    define({
        getName() {
            return this._name;
        },
        getMongo() {
            return this._mongo;
        },
        getSession() {
            return this._session === undefined ? this._mongo._getDefaultSession() : this._session;
        },
        getSiblingDB(name) {
            return this._session === undefined ? this._mongo.getDB(name) : this._session.getDatabase(name);
        },
        getSisterDB(name) {
            return this.getSiblingDB(name);
        },
        getCollection(name) {
            return new DBCollection(this._mongo, this, name, this._name + "." + name);
        },
        toString() {
            return this._name;
        },
        tojson() {
            return this._name;
        },
        shellPrint() {
            print(this._name);
        },
    });

    // Commands.

    /** A command document: a name alone means `{name: 1}`; `extra` adds fields that the command does not have itself. */
    function commandDocument(command, extra) {
        const named = typeof command === "string" ? {[command]: 1} : command;
        if (extra === undefined || extra === null || typeof extra !== "object") return named;
        const merged = Object.assign({}, named);
        for (const name of Object.keys(extra)) {
            if (!(name in merged)) merged[name] = extra[name];
        }
        return merged;
    }

    define({
        runCommand(command, extra, options) {
            const document = commandDocument(command, extra);
            if (document === null || typeof document !== "object") throw new Error("a command is a document or a name, found " + tojson(command));
            return this._send(document, options, this._mongo.getSecondaryOk() ? {mode: "secondaryPreferred"} : undefined);
        },
        /** As `runCommand`, to the node that the read preference of the session or of the connection asks for. */
        runReadCommand(command, extra, options) {
            const session = this.getSession();
            return this._send(commandDocument(command, extra), options,
                session.getOptions().getReadPreference() || this._mongo._readPreferenceToSend());
        },
        _send(command, options, preference) {
            const sent = preference === undefined || command.$readPreference !== undefined || preference.mode === "primary" ?
                command : Object.assign({}, command, {$readPreference: preference});
            return this.getSession().run(this._name, sent, options === undefined ? 0 : options);
        },
        _dbCommand(command, extra) {
            return this.runCommand(command, extra);
        },
        adminCommand(command, extra) {
            return this._name === "admin" ? this.runCommand(command, extra) : this.getSiblingDB("admin").runCommand(command, extra);
        },
        _adminCommand(command, extra) {
            return this.adminCommand(command, extra);
        },
        /** Runs a command that replies with a cursor and throws unless it worked. */
        runCursorCommand(command) {
            return new DBCommandCursor(this, assert.commandWorked(this.runReadCommand(command)));
        },
        commandHelp(name) {
            return _checkedReply(this.runCommand({[name]: 1, help: true}), "commandHelp failed").help;
        },
        listCommands() {
            const commands = _checkedReply(this.runCommand("listCommands"), "listCommands failed").commands;
            for (const name of Object.keys(commands).sort()) print(name + ": " + commands[name].help);
        },
        aggregate(pipeline, options = {}) {
            return global._aggregate(this, 1, pipeline, options);
        },
        /** Runs an aggregate command that is written out; its options may also come apart from it. */
        _runAggregate(command, options = {}) {
            const {aggregate, pipeline, ...rest} = command;
            return global._aggregate(this, aggregate, pipeline, Object.assign(rest, options));
        },
        watch(pipeline, options) {
            return this._watch(pipeline, options, {});
        },
        _watch(pipeline = [], options = {}, scope) {
            const {stage, rest} = global._changeStreamOptions(options);
            return this.aggregate([{$changeStream: Object.assign({}, stage, scope)}, ...pipeline], rest);
        },
        setSecondaryOk(value) {
            this._mongo.setSecondaryOk(value);
        },
        setSlaveOk(value) {
            this._mongo.setSecondaryOk(value);
        },
        getSecondaryOk() {
            return this._mongo.getSecondaryOk();
        },
        getSlaveOk() {
            return this._mongo.getSecondaryOk();
        },
        getQueryOptions() {
            return this._mongo.getSecondaryOk() ? 4 : 0;
        },
        setWriteConcern(concern) {
            this._writeConcern = concern instanceof WriteConcern ? concern : new WriteConcern(concern);
        },
        getWriteConcern() {
            return this._writeConcern || this._mongo.getWriteConcern();
        },
        unsetWriteConcern() {
            this._writeConcern = undefined;
        },
    });

    // Collections.

    define({
        /** Entries of listCollections, by name. */
        getCollectionInfos(filter, nameOnly, authorizedCollections, options) {
            return this._getCollectionInfosCommand(filter, nameOnly, authorizedCollections, options);
        },
        _getCollectionInfosCommand(filter, nameOnly, authorizedCollections, options) {
            const command = {listCollections: 1, filter: filter || {}};
            if (typeof filter === "string") command.filter = {name: filter};
            if (nameOnly !== undefined) command.nameOnly = nameOnly;
            if (authorizedCollections !== undefined) command.authorizedCollections = authorizedCollections;
            const reply = this.runReadCommand(Object.assign(command, options));
            _checkedReply(reply, "listCollections failed");
            return new DBCommandCursor(this, reply).toArray().sort(compareOn("name"));
        },
        getCollectionNames() {
            return this.getCollectionInfos({}, true, true).map(info => info.name);
        },
        createCollection(name, options) {
            return this.runCommand(Object.assign({create: name}, options));
        },
        createView(name, viewOn, pipeline, options) {
            const stages = pipeline === undefined ? [] : Array.isArray(pipeline) ? pipeline : [pipeline];
            return this.runCommand(Object.assign({create: name, viewOn, pipeline: stages}, options));
        },
        dropDatabase(writeConcern) {
            const concern = writeConcern || this._plainWriteConcern();
            return this.runCommand(Object.assign({dropDatabase: 1}, concern === undefined ? {} : {writeConcern: concern}));
        },
        _plainWriteConcern() {
            const concern = this.getWriteConcern();
            return concern === undefined ? undefined : concern.toJSON();
        },
        printCollectionStats(scale) {
            for (const name of this.getCollectionNames()) {
                print(name);
                printjson(this.getCollection(name).stats(scale));
                print("---");
            }
        },
        checkMetadataConsistency(options = {}) {
            return this.runCursorCommand(Object.assign({checkMetadataConsistency: 1}, options));
        },
    });

    define({
        /** The shard that the database's unsharded collections live on by default. */
        getDatabasePrimaryShardId() {
            if (["admin", "config"].includes(this._name)) return "config";
            const entry = this.getSiblingDB("config").getCollection("databases").findOne({_id: this._name});
            if (entry === null) throw new Error("couldn't find database " + this._name + " in config.databases");
            return entry.primary;
        },
    });

    define({
        /** Makes the functions and values that the database keeps in `system.js` global here. */
        loadServerScripts() {
            for (const {_id, value} of this.getCollection("system.js").find().toArray())
                global[_id] = value instanceof Code ? (0, eval)("(" + value.code + ")") : value;
        },
    });

    // The server.

    define({
        stats(options) {
            const given = typeof options === "number" ? {scale: options} : options;
            return this.runCommand(Object.assign({dbStats: 1}, given));
        },
        serverStatus(options) {
            return this.adminCommand(Object.assign({serverStatus: 1}, options));
        },
        hello() {
            return this.runCommand("hello");
        },
        isMaster() {
            return this.runCommand("isMaster");
        },
        /** The reply of `hello` for a server that knows it, else of its older name. */
        _helloOrLegacyHello() {
            const reply = this.hello();
            return reply.code === ErrorCodes.CommandNotFound ? this.isMaster() : reply;
        },
        /** Lets the server read its certificates anew; it writes the message to its log. */
        rotateCertificates(message) {
            return this.adminCommand(Object.assign({rotateCertificates: 1}, message === undefined ? {} : {message}));
        },
        hostInfo() {
            return this.adminCommand("hostInfo");
        },
        serverBuildInfo() {
            return this.adminCommand("buildInfo");
        },
        serverBits() {
            return this.serverBuildInfo().bits;
        },
        serverCmdLineOpts() {
            return this.adminCommand("getCmdLineOpts");
        },
        version() {
            return this.serverBuildInfo().version;
        },
        shutdownServer(options) {
            if (this._name !== "admin") return "shutdown command only works with the admin database; try 'use admin'";
            try {
                const reply = this.runCommand(Object.assign({shutdown: 1}, options));
                if (reply && !reply.ok) throw _getErrorWithCode(reply, "shutdownServer failed: " + tojson(reply));
                print("server should be down...");
            } catch (error) {
                if (!isNetworkError(error)) throw error;
                print("server should be down...");
            }
            return undefined;
        },
        getProfilingStatus() {
            const {ok, ...status} = _checkedReply(this.runCommand({profile: -1}), "profile command failed");
            return status;
        },
        getProfilingLevel() {
            const reply = this.runCommand({profile: -1});
            return reply ? reply.was : null;
        },
        setProfilingLevel(level, options) {
            if (!Number.isInteger(level) || level < 0 || level > 2)
                throw new Error("getProfilingLevel failed: input level " + level + " is out of range [0..2]");
            const given = typeof options === "number" ? {slowms: options} : options;
            return _checkedReply(this.runCommand(Object.assign({profile: level}, given)), "profile command failed");
        },
        /** Operations in progress: true for all of them, a document to filter, none for the active ones. */
        currentOp(argument) {
            const given = typeof argument === "boolean" ? {$all: argument} : argument;
            return this.adminCommand(Object.assign({currentOp: 1}, given));
        },
        currentOP(argument) {
            return this.currentOp(argument);
        },
        currentOpCursor(argument) {
            const {$all, $ownOps, ...match} = typeof argument === "boolean" ? {$all: argument} : argument || {};
            const stage = {allUsers: !$ownOps, idleConnections: Boolean($all)};
            return this.getSiblingDB("admin").aggregate([{$currentOp: stage}, {$match: match}]);
        },
        killOp(opid) {
            if (opid === undefined) throw new Error("no opNum to kill specified");
            return this.adminCommand({killOp: 1, op: opid});
        },
        killOP(opid) {
            return this.killOp(opid);
        },
        fsyncLock() {
            return this.adminCommand({fsync: 1, lock: true});
        },
        fsyncUnlock() {
            return this.adminCommand({fsyncUnlock: 1});
        },
        getLogComponents() {
            return this._mongo.getLogComponents(this.getSession());
        },
        setLogLevel(level, component) {
            return this._mongo.setLogLevel(level, component, this.getSession());
        },
        getLastErrorObj(w, wtimeout, j) {
            const command = {getLastError: 1};
            if (w !== undefined) command.w = w;
            if (wtimeout !== undefined) command.wtimeout = wtimeout;
            if (j !== undefined) command.j = j;
            return _checkedReply(this.runCommand(command), "getlasterror failed");
        },
        getLastError(w, wtimeout, j) {
            return this.getLastErrorObj(w, wtimeout, j).err;
        },
        getLastErrorCmd(w, wtimeout, j) {
            return this.getLastErrorObj(w, wtimeout, j);
        },
        printShardingStatus(verbose) {
            if (typeof printShardingStatus !== "function") throw new Error("printShardingStatus is not loaded");
            return printShardingStatus(this.getSiblingDB("config"), verbose);
        },
    });

    // Replication, as a member of a set sees it.

    define({
        /** The extent of the oplog: its configured and used size in MB, its first and last entries' times. */
        getReplicationInfo() {
            const local = this.getSiblingDB("local");
            const oplog = local.getCollection("oplog.rs");
            const [first] = oplog.find().sort({$natural: 1}).limit(1).toArray();
            const [last] = oplog.find().sort({$natural: -1}).limit(1).toArray();
            if (!first || !last) return {errmsg: "neither master/slave nor replica set replication detected"};
            const stats = oplog.stats();
            const seconds = last.ts.getTime() - first.ts.getTime();
            const at = time => String(new Date(time * 1000));
            return {
                logSizeMB: Number(stats.maxSize) / 1048576, usedMB: Math.ceil(Number(stats.size) / 10485.76) / 100,
                timeDiff: seconds, timeDiffHours: Math.round(seconds / 36) / 100,
                tFirst: at(first.ts.getTime()), tLast: at(last.ts.getTime()), now: String(new Date()),
            };
        },
        printReplicationInfo() {
            const info = this.getReplicationInfo();
            if (info.errmsg) return print(tojson(info));
            print("configured oplog size:   " + info.logSizeMB + "MB");
            print("log length start to end: " + info.timeDiff + "secs (" + info.timeDiffHours + "hrs)");
            print("oplog first event time:  " + info.tFirst);
            print("oplog last event time:   " + info.tLast);
            return print("now:                     " + info.now);
        },
        printSlaveReplicationInfo() {
            this.printSecondaryReplicationInfo();
        },
        /** How far each secondary is behind the primary, by the set's status. */
        printSecondaryReplicationInfo() {
            const members = _checkedReply(this.adminCommand({replSetGetStatus: 1}), "replSetGetStatus failed").members;
            const primary = members.find(member => member.state === 1);
            for (const member of members.filter(each => each.state === 2)) {
                print("source: " + member.name + "\n    syncedTo: " + member.optimeDate);
                if (primary) print("    " + (primary.optimeDate - member.optimeDate) / 1000 + " secs behind the primary");
            }
        },
    });
    /** The seconds of a cluster's time, given as a timestamp or as its 64 bits. */
    DB.tsToSeconds = time => time instanceof Timestamp ? time.getTime() : Math.floor(Number(time) / 4294967296);

    // Users and roles.

    function withConcern(database, command, concern) {
        const plain = concern || database._plainWriteConcern();
        return plain === undefined ? command : Object.assign({}, command, {writeConcern: plain});
    }

    const missing = code => reply => reply.code === code;
    const isMissingUser = missing(11);
    const isMissingRole = missing(31);

    /** Grants or revokes what `field` names: roles or privileges. */
    function change(command, field) {
        return function (name, list, concern) {
            checkedErrmsg(this.runCommand(withConcern(this, {[command]: name, [field]: list}, concern)));
        };
    }
    function checkedErrmsg(reply) {
        if (!reply.ok) throw _getErrorWithCode(reply, reply.errmsg);
        return reply;
    }
    /** Drops one user or role: false when there was none. */
    function drop(command, isMissing) {
        return function (name, concern) {
            const reply = this.runCommand(withConcern(this, {[command]: name}, concern));
            if (reply.ok) return true;
            if (isMissing(reply)) return false;
            throw _getErrorWithCode(reply, reply.errmsg);
        };
    }
    function dropAll(command) {
        return function (concern) {
            return checkedErrmsg(this.runCommand(withConcern(this, {[command]: 1}, concern))).n;
        };
    }

    define({
        createUser(user, concern) {
            const {user: name, ...rest} = user;
            const reply = this.runCommand(withConcern(this, Object.assign({createUser: name}, rest), concern));
            if (!reply.ok) throw _getErrorWithCode(reply, "couldn't add user: " + reply.errmsg);
            const {pwd, ...shown} = user;
            print("Successfully added user: " + tojson(shown));
        },
        addUser(user, concern) {
            return this.createUser(user, concern);
        },
        updateUser(name, changes, concern) {
            const reply = this.runCommand(withConcern(this, Object.assign({updateUser: name}, changes), concern));
            if (!reply.ok) throw _getErrorWithCode(reply, "Updating user failed: " + reply.errmsg);
        },
        changeUserPassword(name, password, concern) {
            return this.updateUser(name, {pwd: password}, concern);
        },
        dropUser: drop("dropUser", isMissingUser),
        removeUser: drop("dropUser", isMissingUser),
        dropAllUsers: dropAll("dropAllUsersFromDatabase"),
        grantRolesToUser: change("grantRolesToUser", "roles"),
        revokeRolesFromUser: change("revokeRolesFromUser", "roles"),
        getUser(name, options) {
            const id = typeof name === "string" ? {user: name, db: this._name} : name;
            const reply = checkedErrmsg(this.runCommand(Object.assign({usersInfo: id}, options)));
            return reply.users.length ? reply.users[0] : null;
        },
        getUsers(options) {
            return checkedErrmsg(this.runCommand(Object.assign({usersInfo: 1}, options))).users;
        },
        createRole(role, concern) {
            const {role: name, ...rest} = role;
            checkedErrmsg(this.runCommand(withConcern(this, Object.assign({createRole: name}, rest), concern)));
            printjson(role);
        },
        updateRole(name, changes, concern) {
            checkedErrmsg(this.runCommand(withConcern(this, Object.assign({updateRole: name}, changes), concern)));
        },
        dropRole: drop("dropRole", isMissingRole),
        dropAllRoles: dropAll("dropAllRolesFromDatabase"),
        grantRolesToRole: change("grantRolesToRole", "roles"),
        revokeRolesFromRole: change("revokeRolesFromRole", "roles"),
        grantPrivilegesToRole: change("grantPrivilegesToRole", "privileges"),
        revokePrivilegesFromRole: change("revokePrivilegesFromRole", "privileges"),
        getRole(name, options) {
            const id = typeof name === "string" ? {role: name, db: this._name} : name;
            const reply = checkedErrmsg(this.runCommand(Object.assign({rolesInfo: id}, options)));
            return reply.roles.length ? reply.roles[0] : null;
        },
        getRoles(options) {
            return checkedErrmsg(this.runCommand(Object.assign({rolesInfo: 1}, options))).roles;
        },
        /** Logs in: 1, or 0 after printing why not. Takes a name and a password, or `{user, pwd, mechanism, ...}`. */
        auth(...credentials) {
            try {
                this._authOrThrow(...credentials);
                return 1;
            } catch (error) {
                print(error);
                return 0;
            }
        },
        _authOrThrow(user, password) {
            const given = typeof user === "object" ? Object.assign({}, user) : {user, pwd: password};
            if (given.db !== undefined && given.db !== this._name)
                throw new Error("Error: do not override db field on db.auth(). Use getMongo().auth(), instead.");
            given.db = this._name;
            const result = this._mongo.auth(given);
            if (!result) throw new Error("authentication failed");
            return result;
        },
        logout() {
            return typeof this._mongo.logout === "function" ? this._mongo.logout(this._name) : this.runCommand({logout: 1});
        },
    });
})(globalThis);
