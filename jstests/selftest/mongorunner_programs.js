/**
 * Programs can be run by their bare arguments, their output is kept line by line under a prefix, and their ends are told.
 * It fails if output of one program is taken for another's, if an exit code is lost, or if a pid of an ended program seems alive.
 *
 * @tags: [requires_own_servers]
 */
const port = allocatePort();
const dbpath = MongoRunner.dataPath + "mongorunner_programs";
resetDbpath(dbpath);

clearRawMongoProgramOutput();
const conn = startMongoProgram("mongod", "--port", port, "--dbpath", dbpath);
assert.eq(port, conn.port);
assert.commandWorked(conn.adminCommand({ ping: 1 }));
assert.soon(() => new RegExp(`d${port}\\|.*Waiting for connections`, "i").test(rawMongoProgramOutput(".*")), "no line of the server");
assert(MongoRunner.runningChildPids().includes(conn.pid));
assert.eq(0, stopMongoProgram(port));
assert(!MongoRunner.runningChildPids().includes(conn.pid));
clearRawMongoProgramOutput();
assert(!/Waiting for connections/i.test(rawMongoProgramOutput(".*")), "output was cleared");

assert.eq(0, runMongoProgram("mongod", "--version"));
assert.eq(2, runMongoProgram("mongod", "--noSuchOption"));
assert(/noSuchOption/.test(rawMongoProgramOutput(".*")), "what it said");

assert.eq(0, runNonMongoProgram("true"));
assert.eq(3, runNonMongoProgram("sh", "-c", "echo said by sh; exit 3"));
assert(/sh\d+\| said by sh/.test(rawMongoProgramOutput("said by sh")), rawMongoProgramOutput("said by sh"));

const pid = startMongoProgramNoConnect("mongo", "--nodb", "--eval", "sleep(60000)");
assert(checkProgram(pid).alive);
stopMongoProgramByPid(pid, 9);
assert.eq(-9, waitProgram(pid));
assert.eq({ alive: false, exitCode: -9 }, { alive: checkProgram(pid).alive, exitCode: Number(checkProgram(pid).exitCode) });

assert.eq(7, runMongoProgram("mongo", "--nodb", "--eval", "quit(7)"));
assert.eq(1234, _parsePort("mongod", "--port", "1234"));
assert.throws(() => _parsePath("mongod", "--port", "1234"));
