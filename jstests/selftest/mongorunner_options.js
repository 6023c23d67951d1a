/**
 * Options of MongoRunner become the argument vector that a person would have typed.
 * It fails if a document of parameters is passed as one, if what steers the launcher reaches the program, or if a flag gets a value.
 *
 * @tags: [requires_own_servers]
 */
const args = (given) => MongoRunner.arrOptions("mongod", given);

assert.eq(["mongod", "--port", "1234", "--dbpath", "/x"], args({ dbpath: "/x", port: 1234 }));
assert.eq(["mongod", "--shardsvr", "--auth"], args({ shardsvr: "", auth: true }));
assert.eq(["mongod"], args({ auth: false, replSet: null, oplogSize: undefined }));
assert.eq(["mongod", "--oplogSize", "0"], args({ oplogSize: 0 }));
assert.eq(["mongod", "--oplogSize", "40"], args({ oplogSize: NumberInt(40) }));
assert.eq(["mongod", "-vvv", "-vv"], args({ verbose: 3, vv: "" }));
assert.eq(["mongod"], args({ verbose: 0, waitForConnect: false, remember: true, noCleanData: true, binVersion: "latest", restart: true }));

const parameters = { syncdelay: 5, logComponentVerbosity: { sharding: 2 }, quiet: true, ttlMonitorSleepSecs: NumberLong(7) };
assert.eq(
    [
        "mongod", "--setParameter", "syncdelay=5", "--setParameter", 'logComponentVerbosity={"sharding":2}',
        "--setParameter", "quiet=true", "--setParameter", "ttlMonitorSleepSecs=7",
    ],
    args({ setParameter: parameters }));
assert.eq(["mongod", "--setParameter", "a=1"], args({ setParameter: "a=1" }));
assert.eq(["mongod", "--setParameter", "a=1", "--setParameter", "b=2"], args({ setParameter: ["a=1", { b: 2 }] }));

// Places: names stand for what is known of the server, and what is not absolute is below the data path.
assert.eq("x-20-y", MongoRunner.toRealPath("x-$port-y", { port: 20 }));
assert.eq(MongoRunner.dataPath + "set-1", MongoRunner.toRealDir("set-$node", { node: 1 }));
assert.eq(MongoRunner.dataPath + "a", MongoRunner.toRealDir("$dataRoot/a"));
assert.eq("/absolute", MongoRunner.toRealDir("/absolute/"));

const [one, two] = MongoRunner.allocatePorts(2);
assert.neq(one, two);
assert.gt(MongoRunner.allocatePort(), 0);

// Versions: as many components as both have are compared.
assert.eq(0, MongoRunner.compareBinVersions("8.0", "8.0.4"));
assert.eq(1, MongoRunner.compareBinVersions("8.1", "8.0.9"));
assert.eq(-1, MongoRunner.compareBinVersions("7.0.12", "8.0"));
assert.eq(1, MongoRunner.compareBinVersions("10.0", "9.0"));
assert(MongoRunner.areBinVersionsTheSame("latest", version()));
assert(!MongoRunner.areBinVersionsTheSame("latest", "4.4"));
assert.eq(version(), MongoRunner.getBinVersionFor("latest"));
assert.throws(() => MongoRunner.getBinVersionFor("last-lts"));
assert.throws(() => MongoRunner.runMongod({ binVersion: "7.0" }));

assert.eq(
    [0, 2, 48, 62, 100, 14, -9],
    ["CLEAN", "BADOPTIONS", "NET_ERROR", "NEED_DOWNGRADE", "UNCAUGHT", "ABRUPT", "SIGKILL"].map((name) => MongoRunner["EXIT_" + name]));
