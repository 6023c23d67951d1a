/**
 * Commands of administrators refuse malformed arguments with the codes that tools look for, and answer in the types they rely on.
 * Fails when an argument of a wrong type is taken, an unknown one is ignored, or a count changes its type.
 */
const t = db.administrative_arguments;
t.drop();
assert.commandWorked(t.insert([{_id: 1, a: 1}, {_id: 2, a: 2}]));
assert.commandWorked(t.createIndex({a: 1}, {sparse: true, name: "a_sparse"}));
const fails = (code, command, database = db) => assert.commandFailedWithCode(database.runCommand(command), code, tojson(command));
const admin = db.getSiblingDB("admin");

// validateDBMetadata: nothing but version "1" has rules.
const parameters = (more) => ({validateDBMetadata: 1, db: db.getName(), collection: t.getName(), apiParameters: Object.assign({version: "1", strict: true}, more)});
const found = assert.commandWorked(db.runCommand(parameters({})));
// Of a sharded collection each shard says what it finds.
assert.gte(found.apiVersionErrors.length, 1, tojson(found));
for (const e of found.apiVersionErrors) {
    assert.eq([323, "The index with name a_sparse is not allowed in API version 1."], [e.code, e.errmsg], tojson(found));
}
assert.eq([], assert.commandWorked(db.runCommand(parameters({version: "2"}))).apiVersionErrors);
fails(ErrorCodes.TypeMismatch, parameters({version: 1}));
fails(ErrorCodes.TypeMismatch, parameters({strict: 1}));
fails(40414, parameters({version: null}));
fails(40415, parameters({more: 1}));
fails(ErrorCodes.InvalidNamespace, Object.assign(parameters({}), {db: "a.b"}));

// getParameter: by name, all, with details, those that can be set at some time.
const level = assert.commandWorked(admin.runCommand({getParameter: {showDetails: true}, logLevel: 1})).logLevel;
assert.eq(true, level.settableAtRuntime, tojson(level));
const atRuntime = assert.commandWorked(admin.runCommand({getParameter: {allParameters: true, setAt: "runtime"}}));
assert.eq([true, false], [atRuntime.hasOwnProperty("logLevel"), atRuntime.hasOwnProperty("enableTestCommands")]);
fails(ErrorCodes.TypeMismatch, {getParameter: {showDetails: "yes"}, logLevel: 1}, admin);
fails(ErrorCodes.BadValue, {getParameter: {allParameters: true, setAt: "never"}}, admin);
fails(40415, {getParameter: {more: true}, logLevel: 1}, admin);

// $listLocalSessions: null is absent, also in the list of users.
const sessions = (spec, target = 1) => ({aggregate: target, pipeline: [{$listLocalSessions: spec}], cursor: {}});
assert.commandWorked(db.runCommand(sessions({users: [null], allUsers: true})));
assert.commandWorked(db.runCommand(sessions({users: null, allUsers: null})));
fails(40414, sessions({users: [{user: null, db: "admin"}]}));
fails(40415, sessions({users: [{user: "a", db: "admin", more: 1}]}));
fails(ErrorCodes.InvalidNamespace, sessions({}, t.getName()));

// Strings of expressions.
const evaluated = (expression) => ({aggregate: t.getName(), pipeline: [{$set: {v: expression}}], cursor: {}});
fails(10503904, evaluated({$replaceOne: {input: 1, find: "a", replacement: "b"}}));
fails(10503901, evaluated({$replaceAll: {input: "a", find: 1, replacement: "b"}}));
fails(10503902, evaluated({$replaceAll: {input: "a", find: "a", replacement: 1}}));

// Commands of sessions, of the log and of the disk.
for (const command of [{startSession: 1}, {killSessions: []}, {killAllSessions: []}]) {
    fails(ErrorCodes.InvalidOptions, Object.assign({}, command, {writeConcern: {w: 1}}));
}
fails(40414, {killAllSessions: null});
fails(40414, {killAllSessions: [{user: null, db: "admin"}]});
fails(40415, {killAllSessions: [{user: "nobody", db: "admin", more: 1}]});
fails(40415, {logRotate: 1, more: 1}, admin);
fails(ErrorCodes.TypeMismatch, {logRotate: null}, admin);
fails(40415, {fsync: 1, Lock: true}, admin);
fails(ErrorCodes.TypeMismatch, {fsync: 1, lock: "true"}, admin);
fails(ErrorCodes.TypeMismatch, {fsync: 1, fsyncLockAcquisitionTimeoutMillis: NumberLong(1)}, admin);
fails(ErrorCodes.InvalidOptions, {fsync: 1, writeConcern: {w: 1}}, admin);

// Validators: nothing that sorts by distance, and none in the databases of the server.
fails(5626500, {create: t.getName() + "_near", validator: {a: {$near: [0, 0]}}});
fails(5626500, {collMod: t.getName(), validator: {a: {$near: [0, 0]}}});
fails(ErrorCodes.InvalidOptions, {create: "system.js", validator: {a: 1}});
fails(ErrorCodes.InvalidOptions, {create: "administrative_arguments", validator: {a: 1}}, admin);
fails(5626500, {listDatabases: 1, filter: {name: {$near: [0, 0]}}}, admin);
fails(ErrorCodes.TypeMismatch, {listCollections: 1, nameOnly: 1});
fails(ErrorCodes.TypeMismatch, {getClusterParameter: ["changeStreamOptions", 1]}, admin);

// setParameter: anything is a boolean, any number an integer, and of several parameters all are set or none.
const setting = (values) => Object.assign({setParameter: 1}, values);
try {
    for (const value of ["false", [], {}, 1.5]) {
        assert.commandWorked(admin.runCommand(setting({quiet: value})));
        assert.eq(true, admin.runCommand({getParameter: 1, quiet: 1}).quiet, tojson(value));
    }
    assert.commandWorked(admin.runCommand(setting({logLevel: NumberDecimal("0"), quiet: null})));
    for (const value of ["1", [1], {a: 1}, NumberLong("2147483648"), NaN]) {
        fails(ErrorCodes.BadValue, setting({logLevel: value}), admin);
    }
    fails(ErrorCodes.TypeMismatch, setting({automationServiceDescriptor: 1}), admin);
    fails(ErrorCodes.Overflow, setting({automationServiceDescriptor: "x".repeat(65)}), admin);
    fails(ErrorCodes.InvalidOptions, setting({logLevel: 1, noSuchParameter: 1}), admin);
    assert.eq(0, admin.runCommand({getParameter: 1, logLevel: 1}).logLevel);
    fails(ErrorCodes.IllegalOperation, setting({featureCompatibilityVersion: "8.0"}), admin);
} finally {
    assert.commandWorked(admin.runCommand(setting({logLevel: 0, quiet: false})));
}

// setFeatureCompatibilityVersion: the version of this server and no other.
const version = (more) => Object.assign({setFeatureCompatibilityVersion: "8.0", confirm: true}, more);
assert.commandWorked(admin.runCommand(version({confirm: NumberDecimal("1")})));
fails(7369100, version({confirm: 0}), admin);
fails(ErrorCodes.TypeMismatch, version({confirm: "true"}), admin);
fails(40415, version({more: 1}), admin);
fails(40414, version({setFeatureCompatibilityVersion: null}), admin);
fails(4926900, version({setFeatureCompatibilityVersion: "4.4"}), admin);
fails(ErrorCodes.NotImplemented, version({setFeatureCompatibilityVersion: "7.0"}), admin);

// Small commands take their own arguments and no others.
for (const command of [{ping: 1}, {buildInfo: 1}, {hostInfo: 1}, {getCmdLineOpts: 1}, {getLog: "global"}]) {
    fails(40415, Object.assign({}, command, {more: 1}), admin);
}
fails(40414, {getLog: null}, admin);
fails(40415, {dropConnections: 1, hostAndPort: [], more: 1}, admin);
assert.commandWorked(admin.runCommand({dropConnections: 1, hostAndPort: [null, "nobody.invalid:1"]}));
for (const host of ["", ":1", "a:0", "a:65536", "a:b", "a:1:2"]) {
    fails(ErrorCodes.FailedToParse, {dropConnections: 1, hostAndPort: [host]}, admin);
}

if (db.hello().msg !== "isdbgrid") {
    // Sizes and statistics.
    const size = (more) => Object.assign({dataSize: t.getFullName()}, more);
    assert.eq(true, assert.commandWorked(db.runCommand(size({estimate: 1}))).estimate);
    assert.eq(false, assert.commandWorked(db.runCommand(size({}))).estimate);
    assert.eq(1, assert.commandWorked(db.runCommand(size({min: {a: 1}, max: {a: 2}}))).numObjects);
    fails(ErrorCodes.OperationFailed, size({min: {b: 1}, max: {b: 2}}));
    fails(ErrorCodes.TypeMismatch, size({estimate: "yes"}));
    fails(40414, {dataSize: null});
    fails(ErrorCodes.TypeMismatch, {dbStats: 1, freeStorage: "yes"});
    assert.eq(0, assert.commandWorked(db.runCommand({dbStats: 1, freeStorage: 1})).totalFreeStorageSize);
    fails(40415, {lockInfo: 1, more: 1}, admin);
    fails(ErrorCodes.BadValue, {hello: 1, saslSupportedMechs: {db: "admin"}});
    fails(ErrorCodes.TypeMismatch, {hello: 1, saslSupportedMechs: null});
    const before = admin.serverStatus().catalogStats;
    const counted = db.getSiblingDB(db.getName() + "_counted");
    assert.commandWorked(counted.createCollection("capped", {capped: true, size: 4096}));
    assert.commandWorked(counted.createView("view", "capped", []));
    const after = admin.serverStatus().catalogStats;
    assert.eq([1, 1, 1], ["collections", "capped", "views"].map(kind => after[kind] - before[kind]), tojson([before, after]));
    assert.commandWorked(counted.dropDatabase());

    // profile: levels of any type of number, and a filter shown with its $eq.
    try {
        assert.commandWorked(db.runCommand({profile: NumberDecimal("1"), sampleRate: NumberDecimal("0.5"), filter: {op: "none"}}));
        const profiling = assert.commandWorked(db.runCommand({profile: -1}));
        assert.eq([1, 0.5, {op: {$eq: "none"}}], [profiling.was, profiling.sampleRate, profiling.filter], tojson(profiling));
        assert.eq("string", typeof profiling.note);
    } finally {
        assert.commandWorked(db.runCommand({profile: 0, sampleRate: 1, filter: "unset"}));
    }

    // dropDatabase: a number that is one, as the real server reads numbers.
    const dropped = db.getSiblingDB(db.getName() + "_dropped");
    assert.commandWorked(dropped.c.insert({_id: 1}));
    fails(40414, {dropDatabase: null}, dropped);
    fails(ErrorCodes.TypeMismatch, {dropDatabase: "1"}, dropped);
    fails(5255100, {dropDatabase: 2}, dropped);
    assert.eq(1, dropped.c.find().itcount());
    assert.commandWorked(dropped.runCommand({dropDatabase: 1.9}));
    assert.eq(0, dropped.c.find().itcount());

    assert.eq(0, assert.commandWorked(db.runCommand({compact: t.getName(), dryRun: true, force: true})).estimatedBytesFreed);

    // autoCompact: a setting that is on can be given again, and another one only after it was switched off.
    const auto = (options) => Object.assign({autoCompact: true}, options);
    try {
        fails(ErrorCodes.Unauthorized, auto({}));
        fails(40414, {autoCompact: null}, admin);
        fails(ErrorCodes.TypeMismatch, {autoCompact: 1}, admin);
        fails(ErrorCodes.TypeMismatch, auto({runOnce: 1}), admin);
        fails(ErrorCodes.TypeMismatch, auto({freeSpaceTargetMB: "20"}), admin);
        fails(40415, auto({FreeSpaceTargetMB: 20}), admin);
        fails(ErrorCodes.InvalidOptions, auto({writeConcern: {w: 1}}), admin);
        for (const outside of [0, 0.99, NaN, NumberDecimal("0.5"), NumberLong("8796093022208"), Infinity]) {
            fails(ErrorCodes.BadValue, auto({freeSpaceTargetMB: outside}), admin);
        }
        assert.commandWorked(admin.runCommand(auto({freeSpaceTargetMB: 99, runOnce: true})));
        assert.commandWorked(admin.runCommand(auto({freeSpaceTargetMB: 30})));
        assert.commandWorked(admin.runCommand(auto({freeSpaceTargetMB: NumberLong(30)})));
        fails(ErrorCodes.AlreadyInitialized, auto({freeSpaceTargetMB: 50}), admin);
        assert.commandWorked(admin.runCommand({autoCompact: false, freeSpaceTargetMB: NumberLong("8796093022208")}));
        assert.commandWorked(admin.runCommand(auto({freeSpaceTargetMB: 50})));
    } finally {
        assert.commandWorked(admin.runCommand({autoCompact: false}));
    }

    const valid = assert.commandWorked(db.runCommand({validate: t.getName()}));
    assert.eq([2, 2, "None"], [valid.nrecords, valid.keysPerIndex._id_, valid.repairMode], tojson(valid));
    assert.eq(false, assert.commandWorked(db.runCommand({validate: t.getName(), metadata: true})).hasOwnProperty("nrecords"));
    fails(ErrorCodes.InvalidOptions, {validate: t.getName(), metadata: true, full: true});
    fails(ErrorCodes.InvalidOptions, {validate: t.getName(), checkBSONConformance: true, repair: true});
    fails(ErrorCodes.TypeMismatch, {profile: -1 + 1, sampleRate: "x"});
    fails(ErrorCodes.BadValue, {profile: 0, filter: "other"});
    fails(6346807, {compactStructuredEncryptionData: t.getName(), compactionTokens: {}});
    fails(40414, {compactStructuredEncryptionData: t.getName()});
    fails(ErrorCodes.NamespaceNotFound, {compactStructuredEncryptionData: t.getName() + "_none", compactionTokens: {}});
}
