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

if (db.hello().msg !== "isdbgrid") {
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
