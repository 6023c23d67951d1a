// Connections, sessions, cursors and the hooks by which `db.name` is a collection.
//
// A miss on an instance of DB, DBCollection or DBQuery ends at a proxy behind the class's prototype. So what an
// instance or the library's prototypes have is found first and at full speed, and only unknown names are made into
// collections (of a DB: its collection of that name; of a collection: the one below it; of a query: its nth result).
(function(native) {
"use strict";

const has = Object.prototype.hasOwnProperty;
function method(target, name, value) {
    Object.defineProperty(target, name, {value, writable: true, configurable: true});
}
function methods(target, members) {
    for (const name of Object.keys(members)) {
        method(target, name, members[name]);
    }
}
function fail(message, code = ErrorCode.BadValue, codeName) {
    const error = new Error(message);
    error.code = code;
    error.codeName = codeName || "BadValue";
    return error;
}
const ErrorCode = {BadValue: 2, TypeMismatch: 14, CursorNotFound: 43};

// Hooks ---------------------------------------------------------------------------------------------------------

// `own` is a property every constructed instance has and a prototype has not: the library may ask whether
// `DB.prototype.something` exists, and must learn that it does not.
function hook(constructor, own, unknown) {
    const behind = new Proxy(Object.create(Object.prototype), {
        get(target, name, receiver) {
            if (typeof name === "symbol" || name in target) {
                return Reflect.get(target, name, receiver);
            }
            if (name === "" || name[0] === "_" || receiver === null || !has.call(receiver, own)) {
                return undefined;
            }
            return unknown(receiver, name);
        },
    });
    Object.setPrototypeOf(constructor.prototype, behind);
}

function assign(target, members) {
    for (const name of Object.keys(members)) {
        Object.defineProperty(target, name,
                              {value: members[name], writable: true, configurable: true, enumerable: true});
    }
}

function DB(...args) {
    if (!new.target) {
        return new DB(...args);
    }
    if (args.length !== 2) {
        throw fail("db constructor requires 2 arguments");
    }
    const [mongo, name] = args;
    if (typeof name !== "string") {
        throw fail("DB name must be a string");
    }
    const forbidden = name === "" || name.length >= 64 || /[\/\\. "\0]/.test(name);
    if (forbidden && name !== "$external") {
        throw fail("[" + name + "] is not a valid database name");
    }
    assign(this, {_mongo: mongo, _name: name});
}
hook(DB, "_name", (db, name) => db.getCollection(name));

function DBCollection(...args) {
    if (!new.target) {
        return new DBCollection(...args);
    }
    if (args.length !== 4) {
        throw fail("collection constructor requires 4 arguments");
    }
    const [mongo, db, shortName, fullName] = args;
    for (const value of args) {
        if (value === undefined) {
            throw fail("collection constructor called with undefined argument");
        }
    }
    if (String(fullName).includes("\0")) {
        throw fail("collection names cannot contain a null character");
    }
    assign(this, {_mongo: mongo, _db: db, _shortName: shortName, _fullName: fullName});
}
hook(DBCollection, "_shortName",
     (collection, name) => collection._db.getCollection(collection._shortName + "." + name));

function DBQuery(...args) {
    if (!new.target) {
        return new DBQuery(...args);
    }
    if (args.length < 4) {
        throw fail("dbQuery constructor requires at least 4 arguments");
    }
    const [mongo, db, collection, ns, query = {}, fields = null, limit = 0, skip = 0, batchSize = 0, options = 0] = args;
    assign(this, {
        _mongo: mongo,
        _db: db,
        _collection: collection,
        _ns: ns,
        _query: query || {},
        _fields: fields,
        _limit: limit,
        _skip: skip,
        _batchSize: batchSize,
        _options: options,
        _cursor: null,
        _numReturned: 0,
        _special: false,
    });
}
hook(DBQuery, "_ns", (query, name) => {
    const isIndex = /^\d+$/.test(name);
    return isIndex && typeof query.arrayAccess === "function" ? query.arrayAccess(Number(name)) : undefined;
});

// Connections ---------------------------------------------------------------------------------------------------

const settings = new WeakMap();

function Mongo(...args) {
    if (args.length > 3) {
        throw fail("Mongo needs 0 to 3 arguments");
    }
    const [target = "127.0.0.1", encryption, parameters] = args;
    const uri = target instanceof MongoURI ? target.uri : target;
    if (typeof uri !== "string") {
        throw fail("The first argument to Mongo must be a connection string");
    }
    if (encryption && Object.keys(encryption).length > 0) {
        throw fail("Client-side field level encryption is not supported by this shell", 115, "CommandNotSupported");
    }
    const parts = native.parseUri(uri);
    const made = native.openConnection(new.target ? new.target.prototype : Mongo.prototype, uri);
    settings.set(made, {api: apiFields(parameters), parts, protocols: "all"});
    made.host = parts.shown;
    made.defaultDB = parts.database || "test";
    made.fullOptions = parts.options;
    made.authenticated = false;
    made.slaveOk = false;
    if (parts.user !== "") {
        made.auth({
            user: parts.user,
            pwd: parts.password,
            db: parts.options.authSource || parts.database || "admin",
            mechanism: parts.options.authMechanism,
        });
    }
    return made;
}

function settingsOf(mongo) {
    for (let at = mongo; at; at = Object.getPrototypeOf(at)) {
        if (settings.has(at)) {
            return settings.get(at);
        }
    }
    throw fail("the receiver is no Mongo connection");
}

// `{api: {version: "1", strict: true, deprecationErrors: true}}` as the fields each command carries.
function apiFields(parameters) {
    const api = parameters && (parameters.api || parameters);
    if (!api || api.version === undefined) {
        return undefined;
    }
    const fields = {apiVersion: api.version};
    if (api.strict !== undefined) {
        fields.apiStrict = api.strict;
    }
    if (api.deprecationErrors !== undefined) {
        fields.apiDeprecationErrors = api.deprecationErrors;
    }
    return fields;
}

function checkCommand(name, db, command, options) {
    if (typeof db !== "string") {
        throw fail("the database parameter to " + name + " must be a string");
    }
    if (typeof command !== "object" || command === null) {
        throw fail("the cmdObj parameter to " + name + " must be an object");
    }
    if (options !== undefined && typeof options !== "number") {
        throw fail("the options parameter to " + name + " must be a number");
    }
}

function run(mongo, db, command, options) {
    return native.runCommand(mongo, db, command, options || 0, settingsOf(mongo).api);
}

// A command of the shell's own, which must succeed.
function runOk(mongo, db, command, options) {
    const reply = run(mongo, db, command, options);
    if (reply.ok !== 1) {
        const error = fail(reply.errmsg, reply.code, reply.codeName);
        error.writeErrors = reply.writeErrors;
        throw error;
    }
    return reply;
}

function wireVersion(mongo, field) {
    const version = native.hello(mongo)[field];
    return version === undefined ? 0 : Number(version);
}

methods(Mongo.prototype, {
    runCommand(db, command, options) {
        if (arguments.length < 2) {
            throw fail("runCommand needs 3 args");
        }
        checkCommand("runCommand", db, command, options);
        return run(this, db, command, options);
    },
    _runCommandImpl(db, command, options) {
        checkCommand("runCommand", db, command, options);
        return run(this, db, command, options);
    },
    runCommandWithMetadata(db, metadata, command) {
        if (arguments.length !== 3) {
            throw fail("runCommandWithMetadata needs 3 args");
        }
        checkCommand("runCommandWithMetadata", db, command);
        const known = Object.keys(command);
        const body = Object.assign({}, command);
        for (const name of Object.keys(metadata)) {
            if (!known.includes(name)) {
                body[name] = metadata[name];
            }
        }
        return {commandReply: run(this, db, body), metadata: {}};
    },
    auth(...args) {
        const given = args.length === 1 ? args[0] : {db: args[0], user: args[1], pwd: args[2]};
        authenticate(this, given);
        return true;
    },
    logout(db) {
        return run(this, db, {logout: 1});
    },
    close() {
        native.closeConnection(this);
    },
    isReplicaSetConnection() { return native.isSet(this); },
    isReplicaSetMember() { return native.hello(this).setName !== undefined; },
    isMongos() { return native.hello(this).msg === "isdbgrid"; },
    isTLS() { return false; },
    isGRPC() { return false; },
    getMinWireVersion() { return wireVersion(this, "minWireVersion"); },
    getMaxWireVersion() { return wireVersion(this, "maxWireVersion"); },
    getClientRPCProtocols() { return settingsOf(this).protocols; },
    setClientRPCProtocols(protocols) {
        if (!["none", "opQueryOnly", "opMsgOnly", "all"].includes(protocols)) {
            throw fail("setClientRPCProtocols: unknown protocols " + protocols);
        }
        settingsOf(this).protocols = protocols;
    },
    getServerRPCProtocols() { return "all"; },
    getApiParameters() { return settingsOf(this).api || {}; },
    getShellPort() { return native.localPort(this); },
    _markNodeAsFailed(host) { native.forgetHost(this, String(host)); },
    _setOIDCIdPAuthCallback() {},
    _startSession(options) { return new SessionHandle(this, options); },
    cursorFromId(ns, id, batchSize) {
        const cursor = new Cursor(this, ns, {id: asLong(id), batch: []});
        cursor._batchSize = batchSize === undefined ? 0 : Number(batchSize);
        return cursor;
    },
    cursorHandleFromId(ns, id) { return new CursorHandle(this, ns, asLong(id)); },
    find: legacyFind,
    insert: legacyInsert,
    update: legacyUpdate,
    remove: legacyRemove,
});

for (const name of ["encrypt", "decrypt", "generateDataKey", "getDataKeyCollection"]) {
    method(Mongo.prototype, name, function() {
        throw fail("Client-side field level encryption is not supported by this shell", 115, "CommandNotSupported");
    });
}

// Authentication --------------------------------------------------------------------------------------------------

function payload(text) {
    return BinData(0, base64Of(text));
}
function base64Of(text) {
    const hex = Array.from(unescape(encodeURIComponent(text)), (c) => c.charCodeAt(0).toString(16).padStart(2, "0"));
    return HexData(0, hex.join("")).base64();
}
function textOf(binary) {
    return (binary.hex().match(/../g) || []).map((pair) => String.fromCharCode(parseInt(pair, 16))).join("");
}

// The SCRAM conversation. What the server answers to a step that fails is what is thrown.
function authenticate(mongo, given) {
    const user = given.user, password = given.pwd === undefined ? given.password : given.pwd;
    if (typeof user !== "string") {
        throw fail("auth needs a user");
    }
    const mechanism = given.mechanism || "SCRAM-SHA-256";
    const db = given.db || given.userSource || "admin";
    if (!mechanism.startsWith("SCRAM-")) {
        throw fail("Authentication mechanism " + mechanism + " is not supported by this shell", 334, "MechanismUnavailable");
    }
    const nonce = UUID().base64() + UUID().base64();
    const first = "n=" + user.replace(/=/g, "=3D").replace(/,/g, "=2C") + ",r=" + nonce;
    let reply = runOk(mongo, db, {saslStart: 1, mechanism, payload: payload("n,," + first), options: {skipEmptyExchange: true}});
    const last = native.scramMessage(mechanism, user, String(password), first, textOf(reply.payload));
    reply = runOk(mongo, db, {saslContinue: 1, conversationId: reply.conversationId, payload: payload(last.message)});
    if (textOf(reply.payload) !== last.signature) {
        throw fail("the server does not know the password either", 18, "AuthenticationFailed");
    }
    if (!reply.done) {
        runOk(mongo, db, {saslContinue: 1, conversationId: reply.conversationId, payload: payload("")});
    }
    mongo.authenticated = true;
}

// Sessions ------------------------------------------------------------------------------------------------------

const txnStates = ["inactive", "active", "committed", "aborted"];

class SessionHandle {
    #mongo;
    #id = {id: UUID()};
    #txnNumber = NumberLong(-1);
    #txnState = "inactive";
    #ended = false;
    constructor(mongo, options) {
        this.#mongo = mongo;
        if (options && options.id !== undefined) {
            this.#id = options;
        }
    }
    getId() { return this.#id; }
    getTxnNumber() { return this.#txnNumber; }
    setTxnNumber(number) { this.#txnNumber = asLong(number); }
    incrementTxnNumber() { this.#txnNumber = NumberLong(String(BigInt(digitsOf(this.#txnNumber)) + 1n)); }
    getTxnState() { return this.#txnState; }
    setTxnState(state) {
        if (!txnStates.includes(state)) {
            throw fail("unknown transaction state " + state);
        }
        this.#txnState = state;
    }
    // Ends the session on the server, a transaction it is in the midst of first. What fails here is nobody's error:
    // the server ends sessions by itself.
    end() {
        if (this.#ended) {
            return;
        }
        this.#ended = true;
        try {
            if (this.#txnState === "active") {
                run(this.#mongo, "admin", {
                    abortTransaction: 1,
                    lsid: this.#id,
                    txnNumber: this.#txnNumber,
                    autocommit: false,
                });
            }
            run(this.#mongo, "admin", {endSessions: [this.#id], $readPreference: {mode: "primaryPreferred"}});
        } catch (e) {
            if (e.code !== 6) {
                throw e;
            }
        }
    }
}

function digitsOf(long) {
    return native.digits(long);
}
function asLong(value) {
    return value instanceof NumberLong ? value : NumberLong(value);
}

// Cursors -------------------------------------------------------------------------------------------------------

function splitNamespace(ns) {
    const dot = ns.indexOf(".");
    if (dot < 1) {
        throw fail("Invalid namespace specified '" + ns + "'", 73, "InvalidNamespace");
    }
    return [ns.slice(0, dot), ns.slice(dot + 1)];
}

// A document that nobody can change, nor what it holds.
function frozen(value) {
    if (value !== null && typeof value === "object" && !Object.isFrozen(value)) {
        Object.freeze(value);
        Object.values(value).forEach(frozen);
    }
    return value;
}

class CursorHandle {
    constructor(mongo, ns, id) {
        Object.defineProperty(this, "_state", {value: {mongo, ns, id}});
    }
    getId() { return this._state.id; }
    zeroCursorId() { this._state.id = NumberLong(0); }
    close() { killCursor(this._state); }
}

function killCursor(state) {
    const id = state.id;
    state.id = NumberLong(0);
    if (digitsOf(id) !== "0") {
        const [db, collection] = splitNamespace(state.ns);
        run(state.mongo, db, {killCursors: collection, cursors: [id]});
    }
}

class Cursor {
    constructor(mongo, ns, {id, batch}, limit = 0) {
        Object.defineProperty(this, "_state", {value: {mongo, ns, id, batch, at: 0, left: limit, closed: false}});
        Object.defineProperty(this, "_batchSize", {value: 0, writable: true});
    }
    hasNext() {
        const state = this._state;
        while (state.at >= state.batch.length && digitsOf(state.id) !== "0") {
            this._getMore();
            if (state.batch.length === 0) {
                break;
            }
        }
        return state.at < state.batch.length;
    }
    next() {
        if (!this.hasNext()) {
            throw fail("error hasNext: false");
        }
        const document = this._state.batch[this._state.at++];
        return this._state.readOnly ? frozen(document) : document;
    }
    objsLeftInBatch() { return this._state.batch.length - this._state.at; }
    getId() { return this._state.id; }
    zeroCursorId() { this._state.id = NumberLong(0); }
    readOnly() {
        this._state.readOnly = true;
        return this;
    }
    isClosed() { return this._state.closed || digitsOf(this._state.id) === "0"; }
    isExhausted() { return digitsOf(this._state.id) === "0" && this.objsLeftInBatch() === 0; }
    close() {
        this._state.closed = true;
        killCursor(this._state);
    }
    _getMore() {
        const state = this._state;
        const [db, collection] = splitNamespace(state.ns);
        const command = {getMore: state.id, collection};
        if (this._batchSize > 0) {
            command.batchSize = this._batchSize;
        }
        let reply;
        try {
            reply = runOk(state.mongo, db, command);
        } catch (e) {
            if (e.code === ErrorCode.CursorNotFound) {
                state.id = NumberLong(0);
            }
            throw e;
        }
        state.id = asLong(reply.cursor.id);
        state.batch = reply.cursor.nextBatch;
        state.at = 0;
    }
}

// The legacy forms of reads and writes, each as the command that replaced it ---------------------------------------

const queryOption = {tailable: 2, secondaryOk: 4, noCursorTimeout: 16, awaitData: 32, partial: 128};

function legacyFind(ns, query, fields, limit, skip, batchSize, options = 0) {
    const [db, collection] = splitNamespace(ns);
    const asked = query || {};
    const wrapped = asked.$query || asked.query;
    const isWrapped = wrapped !== undefined && typeof wrapped === "object";
    const command = {find: collection, filter: isWrapped ? wrapped : asked};
    const modifiers = {
        $orderby: "sort", orderby: "sort", $hint: "hint", $min: "min", $max: "max", $maxTimeMS: "maxTimeMS",
        $returnKey: "returnKey", $showDiskLoc: "showRecordId", $comment: "comment", $readPreference: "$readPreference",
    };
    for (const name of isWrapped ? Object.keys(modifiers) : []) {
        if (asked[name] !== undefined) {
            command[modifiers[name]] = asked[name];
        }
    }
    if (fields && Object.keys(fields).length > 0) {
        command.projection = fields;
    }
    if (skip) {
        command.skip = skip;
    }
    if (limit) {
        command.limit = Math.abs(limit);
        if (limit < 0) {
            command.singleBatch = true;
        }
    }
    if (batchSize) {
        command.batchSize = Math.abs(batchSize);
    }
    const flags = {
        tailable: queryOption.tailable, awaitData: queryOption.awaitData,
        noCursorTimeout: queryOption.noCursorTimeout, allowPartialResults: queryOption.partial,
    };
    for (const name of Object.keys(flags)) {
        if (options & flags[name]) {
            command[name] = true;
        }
    }
    if (isWrapped && asked.$explain) {
        const explained = runOk(this, db, {explain: command}, options);
        return new Cursor(this, ns, {id: NumberLong(0), batch: [explained]});
    }
    const reply = runOk(this, db, command, options);
    const cursor = new Cursor(this, reply.cursor.ns, {id: asLong(reply.cursor.id), batch: reply.cursor.firstBatch});
    cursor._batchSize = Math.abs(batchSize || 0);
    return cursor;
}

function withId(document) {
    return document._id === undefined && !has.call(document, "_id") ? Object.assign({_id: ObjectId()}, document) : document;
}

function legacyInsert(ns, documents, options = 0) {
    const [db, collection] = splitNamespace(ns);
    const list = Array.isArray(documents) ? documents : [documents];
    run(this, db, {insert: collection, documents: list.map(withId), ordered: !(options & 1)});
}

function legacyUpdate(ns, query, change, upsert = false, multi = false) {
    const [db, collection] = splitNamespace(ns);
    run(this, db, {update: collection, updates: [{q: query, u: change, upsert: !!upsert, multi: !!multi}]});
}

function legacyRemove(ns, query, justOne = false) {
    const [db, collection] = splitNamespace(ns);
    run(this, db, {delete: collection, deletes: [{q: query, limit: justOne ? 1 : 0}]});
}

// URIs and globals ------------------------------------------------------------------------------------------------

function MongoURI(text) {
    if (!new.target) {
        return new MongoURI(text);
    }
    if (typeof text !== "string") {
        throw fail("MongoURI needs 1 argument, a connection string");
    }
    const parts = native.parseUri(text);
    for (const name of ["uri", "user", "password", "database", "setName", "options", "servers"]) {
        this[name] = parts[name];
    }
}
methods(MongoURI.prototype, {toString() { return this.uri; }});

function connect(url, user, password, parameters) {
    if (url instanceof MongoURI) {
        url = url.uri;
    }
    if (url === undefined || url === null || url === "") {
        throw fail("Missing connection string");
    }
    if (typeof url !== "string") {
        throw fail("connect expects a connection string");
    }
    // A lone name is a database of this machine, as it always was.
    const isName = !/[.:\/,]/.test(url) && url !== "localhost";
    const mongo = new Mongo(isName ? "127.0.0.1:27017/" + url : url, undefined, parameters);
    const name = mongo.defaultDB || "test";
    const db = typeof mongo.getDB === "function" ? mongo.getDB(name) : new DB(mongo, name);
    if (user !== undefined && password !== undefined) {
        mongo.auth({user, pwd: password, db: name});
    }
    return db;
}

const globals = {
    Mongo, MongoURI, DB, DBCollection, DBQuery, connect,
    _forgetReplSet() {},
    _replMonitorStats() { return {}; },
};
for (const name of Object.keys(globals)) {
    method(globalThis, name, globals[name]);
}
})
