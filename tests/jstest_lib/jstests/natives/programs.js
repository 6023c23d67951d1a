// Programs: start, watch, stop, what they printed; servers and this shell itself.
Natives.watch("_startMongoProgram", "_runMongoProgram", "runProgram", "run", "runNonMongoProgram", "runNonMongoProgramQuietly", "_stopMongoProgram",
              "stopMongoProgramByPid", "waitProgram", "waitMongoProgram", "checkProgram", "rawMongoProgramOutput", "clearRawMongoProgramOutput",
              "_runningMongoChildProcessIds", "resetDbpath");
clearRawMongoProgramOutput();
const server = TestServers.start();
assert.eq([Number(server.pid)], _runningMongoChildProcessIds().map(Number));
assert.soon(() => new RegExp("d" + server.port + "\\| ").test(rawMongoProgramOutput(".*")), "the prefix of a mongod's output");
const other = TestServers.start();
TestServers.stop(other);
assert.eq(0, Number(waitMongoProgram(other.port)));
assert.eq({alive: false, exitCode: 0}, {alive: checkProgram(other.pid).alive, exitCode: Number(checkProgram(other.pid).exitCode)});
stopMongoProgramByPid(server.pid, 9);
assert.eq(-9, Number(waitProgram(server.pid)));

assert.eq(0, runProgram("true"));
assert.eq(1, run("false"));
assert.eq(4, runNonMongoProgram("sh", "-c", "exit 4"));
assert.eq(0, runNonMongoProgramQuietly("true"));
assert.eq(6, _runMongoProgram("mongo", "--nodb", "--quiet", "--eval", "quit(6)"));
const pid = _startMongoProgram({args: ["mongo", "--nodb", "--eval", "print('the word is ' + _getEnv('A_WORD'))"], env: {A_WORD: "given"}});
assert.eq(0, Number(waitProgram(pid)));
assert(/sh\d+\| .*the word is given/.test(rawMongoProgramOutput("the word")), rawMongoProgramOutput(".*"));
Natives.refused("convertTrafficRecordingToBSON", () => convertTrafficRecordingToBSON("/nowhere"));
Natives.done();
