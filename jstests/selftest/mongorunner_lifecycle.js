/**
 * A mongod started by MongoRunner can be used, ends with its exit code, and comes back on its data.
 * It fails if a start does not wait for the server, if data is lost by a restart or kept without one, or if an exit code is wrong.
 *
 * @tags: [requires_own_servers]
 */
const first = MongoRunner.runMongod({ setParameter: { syncdelay: 33 } });
assert(first.port > 0 && first.pid > 0, tojson([first.port, first.pid]));
assert(checkProgram(first.pid).alive);
assert(pathExists(first.dbpath), first.dbpath);
assert.eq(first.dbpath, first.fullOptions.dbpath);
assert(MongoRunner.isMongod(first));
assert.eq(33, first.adminCommand({ getParameter: 1, syncdelay: 1 }).syncdelay);
// Test commands are there unless a test says otherwise.
assert.commandWorked(first.adminCommand({ configureFailPoint: "failCommand", mode: "off" }));
assert.commandWorked(first.getDB("test").c.insert({ _id: 1 }));
assert.eq(0, MongoRunner.stopMongod(first));
assert(!checkProgram(first.pid).alive);
assert.eq(0, checkProgram(first.pid).exitCode);

// By its connection, on the same port and data.
const second = MongoRunner.runMongod({ restart: first });
assert.eq(first.port, second.port);
assert.eq(first.dbpath, second.dbpath);
assert.eq(33, second.adminCommand({ getParameter: 1, syncdelay: 1 }).syncdelay, "options are remembered");
assert.eq(1, second.getDB("test").c.find().itcount());
assert.eq(MongoRunner.EXIT_SIGKILL, MongoRunner.stopMongod(second, 9));

const third = MongoRunner.runMongod({ port: second.port, dbpath: second.dbpath, noCleanData: true });
assert.eq(1, third.getDB("test").c.find().itcount(), "an acknowledged write outlives the process");
MongoRunner.stopMongod(third);

const fresh = MongoRunner.runMongod({ port: second.port, dbpath: second.dbpath });
assert.eq(0, fresh.getDB("test").c.find().itcount(), "without restart or noCleanData the directory is empty");

// An address that is not of this machine: the server says that it cannot listen, and ends.
const unheard = assert.throws(() => MongoRunner.runMongod({ bind_ip: "192.0.2.1" }));
assert(unheard instanceof MongoRunner.StopError, tojson(unheard));
assert.eq(MongoRunner.EXIT_NET_ERROR, unheard.returnCode);
// A port of one of our own servers is refused before anything starts.
assert.throws(() => MongoRunner.runMongod({ port: fresh.port, dbpath: fresh.dbpath + "-other" }));
assert(checkProgram(fresh.pid).alive);
assert.throws(() => MongoRunner.stopMongod(fresh, 15, { allowedExitCode: MongoRunner.EXIT_ABRUPT }));

const refused = assert.throws(() => MongoRunner.runMongod({ noSuchOption: 1 }));
assert.eq(MongoRunner.EXIT_BADOPTIONS, refused.returnCode);
assert.eq("MongoDB process stopped with exit code: 2", refused.message);

const pending = MongoRunner.runMongod({ waitForConnect: false });
assert.throws(() => pending.getDB("test"));
const conn = MongoRunner.awaitConnection({ pid: pending.pid, port: pending.port });
assert.commandWorked(conn.adminCommand({ ping: 1 }));
// Several at once: the signal first, then the wait.
MongoRunner.stopMongod(pending, 15, {}, false);
assert.eq(0, waitMongoProgram(pending.port));

const routerless = assert.throws(() => MongoRunner.runMongos({}));
assert.neq(0, routerless.returnCode);
