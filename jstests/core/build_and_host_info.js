/**
 * Clients decide by buildInfo and hello what a server can do.
 * Fails when version numbers contradict each other or a limit differs from what drivers rely on.
 */
const build = assert.commandWorked(db.adminCommand({buildInfo: 1}));
assert.eq(db.version(), build.version);
assert.eq(build.version.split(".").slice(0, 3).map(Number), build.versionArray.slice(0, 3));
assert.eq(4, build.versionArray.length);
assert.eq(8, build.versionArray[0]);
assert.eq(16 * 1024 * 1024, build.maxBsonObjectSize);
assert.eq(64, build.bits);
assert.contains("wiredTiger", build.storageEngines);
assert.eq("string", typeof build.gitVersion);
assert.eq(build.version, assert.commandWorked(db.runCommand({buildinfo: 1})).version);

const hello = assert.commandWorked(db.runCommand({hello: 1}));
assert.eq(16777216, hello.maxBsonObjectSize);
assert.eq(48000000, hello.maxMessageSizeBytes);
assert.eq(100000, hello.maxWriteBatchSize);
assert.eq(30, hello.logicalSessionTimeoutMinutes);
assert.eq(25, hello.maxWireVersion);
assert.eq(0, hello.minWireVersion);
assert.eq(true, hello.isWritablePrimary);
assert.eq(false, !!hello.readOnly);
assert(hello.localTime instanceof Date);
assert(hello.hasOwnProperty("connectionId"));
assert(hello.topologyVersion.processId instanceof ObjectId);

const legacy = assert.commandWorked(db.runCommand({isMaster: 1}));
assert.eq(true, legacy.ismaster);
assert(!legacy.hasOwnProperty("isWritablePrimary"));

const host = assert.commandWorked(db.adminCommand({hostInfo: 1}));
assert.lt(0, host.system.numCores);
assert.lt(0, host.system.memSizeMB);
assert.eq("Linux", host.os.type);

const options = assert.commandWorked(db.adminCommand({getCmdLineOpts: 1}));
assert.lte(1, options.argv.length);
assert(options.hasOwnProperty("parsed"));
assert.commandWorked(db.adminCommand({ping: 1}));
assert.eq(0, assert.commandWorked(db.runCommand({connectionStatus: 1})).authInfo.authenticatedUsers.length);
assert(/^[0-9.:a-f\[\]]+:\d+$/.test(assert.commandWorked(db.runCommand({whatsmyuri: 1})).you));
