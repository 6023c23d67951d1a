// Server programs: turning options into an argument vector, starting, waiting until they answer, stopping.
//
//   options -> place (port, dbpath, saved options) -> argv -> _startMongoProgram -> poll until the port answers
//
// `launch` starts without waiting, so that the fixtures of sets and clusters start all their nodes and then wait once.

(function () {
    // Tests may put a Map of their own in its place.
    const Map = globalThis.Map;
    const POLL_MS = 2;
    const START_TIMEOUT_MS = 60 * 1000;

    const EXIT_CODES = {
        EXIT_CLEAN: 0,
        EXIT_BADOPTIONS: 2,
        EXIT_REPLICATION_ERROR: 3,
        EXIT_NEED_UPGRADE: 4,
        EXIT_SHARDING_ERROR: 5,
        EXIT_KILL: 12,
        EXIT_ABRUPT: 14,
        EXIT_NTSERVICE_ERROR: 20,
        EXIT_JAVA_ERROR: 21,
        EXIT_OOM_MALLOC: 42,
        EXIT_OOM_REALLOC: 43,
        EXIT_FS: 45,
        EXIT_CLOCK_SKEW: 47,
        EXIT_NET_ERROR: 48,
        EXIT_WINDOWS_SERVICE_STOP: 49,
        EXIT_POSSIBLE_CORRUPTION: 60,
        EXIT_NEED_DOWNGRADE: 62,
        EXIT_UNCAUGHT: 100,
        EXIT_TEST: 101,
        EXIT_SIGKILL: -9,
        EXIT_ABORT: -6,
        EXIT_SEGV: -11,
    };

    // What steers the launcher itself and never reaches the program.
    const LAUNCHER_OPTIONS = new Set([
        "restart", "remember", "noRemember", "appendOptions", "startClean", "cleanData", "noCleanData", "forceLock",
        "forgetPort", "useHostName", "useHostname", "waitForConnect", "waitpid", "binVersion", "pathOpts", "runId",
        "env", "useLogFiles", "logFile", "noReplSet", "arbiter", "bridge", "bridgeOptions", "programName", "isMongos", "skipValidation",
        "hiddenNode", "rsConfig", "allowedExitCode", "numNodes",
    ]);

    // Flags of the servers that take no value: `true` means the flag alone.
    const BARE_FLAGS = new Set([
        "auth", "noauth", "transitionToAuth", "configsvr", "shardsvr", "directoryperdb", "ipv6", "bind_ip_all", "fork",
        "syslog", "quiet", "repair", "upgrade", "notablescan", "nounixsocket", "noscripting", "journal", "nojournal",
        "logappend", "traceExceptions", "shutdown", "restore", "cpu", "sysinfo", "redactClientLogData",
        "wiredTigerDirectoryForIndexes", "tlsOnNormalPorts", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames",
        "help", "version", "outputConfig", "maintenanceMode",
    ]);

    const options = () => (typeof jsTestOptions === "function" ? jsTestOptions() : globalThis.TestData) || {};
    const isConnection = (value) => value !== null && typeof value === "object" && typeof value.getDB === "function";

    // ---- places ----

    const environment = (name) => (typeof _getEnv === "function" && _getEnv(name)) || "";
    const withSlash = (path) => (path.endsWith("/") ? path : path + "/");
    const dataPath = withSlash(environment("JSTEST_DATA") || "/tmp/jstest-data");

    // Replaces $names by what they stand for, the longest first, so that $dataRoot is not read as $data.
    function toRealPath(path, given = {}) {
        const names = {
            dataRoot: MongoRunner.dataPath.replace(/\/$/, ""),
            dataDir: MongoRunner.dataDir,
            testName: options().testName || "",
            ...given,
        };
        let real = String(path);
        for (const name of Object.keys(names).sort((a, b) => b.length - a.length)) {
            real = real.split("$" + name).join(String(names[name]));
        }
        return real;
    }
    function toRealDir(path, given) {
        const real = toRealPath(path, given).replace(/\/+$/, "");
        return real.startsWith("/") ? real : MongoRunner.dataPath + real;
    }

    // One counter for all threads of the process; ports that somebody listens on are left out.
    const allocatePort = () => Number(_allocatePort());

    function hostFor(given) {
        const { useHostName, useHostname } = given || {};
        const wanted = useHostName !== undefined ? useHostName : useHostname;
        return wanted ? getHostName() : "localhost";
    }

    // ---- versions ----

    const NAMES_OF_CURRENT = new Set(["", "latest"]);

    function versionOf(name) {
        return NAMES_OF_CURRENT.has(name || "") ? version() : String(name);
    }
    const components = (name) => versionOf(name).split("-")[0].split(".").map(Number);

    // Compares as many components as both have: "8.0" is the same as "8.0.4".
    function compareBinVersions(left, right) {
        const [a, b] = [components(left), components(right)];
        for (let i = 0; i < Math.min(a.length, b.length); i++) {
            if (a[i] !== b[i]) return a[i] > b[i] ? 1 : -1;
        }
        return 0;
    }
    function areBinVersionsTheSame(left, right) {
        return NAMES_OF_CURRENT.has(left || "") && NAMES_OF_CURRENT.has(right || "")
            ? true
            : compareBinVersions(left, right) === 0;
    }
    // There is one binary. A test that asks for another version cannot be run, and is told so before anything starts.
    function getBinVersionFor(wanted) {
        const name = isIterator(wanted) ? wanted.current : wanted;
        if (/^last-|^last$/.test(name || "") || !areBinVersionsTheSame(name, "latest")) {
            throw new Error(`binVersion '${name}' is not available: the only version here is ${version()}`);
        }
        return version();
    }
    const isIterator = (value) => value !== null && typeof value === "object" && value.isVersionIterator === true;

    // ---- options to arguments ----

    // Each option of `given` as arguments, in order: a document of parameters gives one --setParameter for each.
    function toArguments(given) {
        const args = [];
        for (const [name, value] of Object.entries(given)) {
            if (LAUNCHER_OPTIONS.has(name) || value === undefined || value === null) continue;
            if (name === "setParameter") args.push(...parameterArguments(value));
            else if (name === "verbose") args.push(...verbosity(value));
            else if (/^v+$/.test(name)) args.push("-" + name);
            else args.push(...optionArguments(name, value));
        }
        return args;
    }
    function optionArguments(name, value) {
        const flag = "--" + name;
        if (value === "" || (value === true && BARE_FLAGS.has(name))) return [flag];
        if (value === false && BARE_FLAGS.has(name)) return [];
        if (Array.isArray(value)) return value.flatMap((one) => optionArguments(name, one));
        return [flag, textOf(value)];
    }
    function verbosity(value) {
        if (typeof value === "string" && /^v+$/.test(value)) return ["-" + value];
        const level = value === true || value === "" ? 1 : Number(value);
        return level > 0 ? ["-" + "v".repeat(Math.min(level, 5))] : [];
    }
    function parameterArguments(value) {
        if (typeof value === "string") return ["--setParameter", value];
        if (Array.isArray(value)) return value.flatMap(parameterArguments);
        return Object.entries(value)
            .filter(([, one]) => one !== undefined && one !== null)
            .flatMap(([name, one]) => ["--setParameter", `${name}=${textOf(one)}`]);
    }
    // A number of 64 or 32 bits by its digits, any other document as JSON.
    function textOf(value) {
        if (typeof value !== "object") return String(value);
        return typeof value.toNumber === "function" ? String(value.toNumber()) : JSON.stringify(value);
    }

    // Parameters that every server of a test is started with, unless its own options name them.
    function defaultParameters(program, args) {
        const named = new Set();
        args.forEach((arg, i) => {
            if (arg === "--setParameter") named.add(String(args[i + 1]).split("=")[0]);
        });
        const { enableTestCommands, setParameters, setParametersMongos } = options();
        const own = program === "mongos" ? setParametersMongos : setParameters;
        const defaults = {
            enableTestCommands: enableTestCommands === false ? undefined : 1,
            disableLogicalSessionCacheRefresh: true,
            ...(typeof own === "object" ? own : {}),
        };
        const missing = Object.entries(defaults).filter(([name]) => !named.has(name));
        return parameterArguments(Object.fromEntries(missing));
    }

    const programOf = (args) => String(args[0]).split("/").pop();
    const isServer = (program) => /^mongo[ds](-|$)/.test(program);

    function completeArguments(given) {
        const args = given.map((arg) => (typeof arg === "string" ? arg : String(arg)));
        const program = programOf(args);
        return isServer(program) ? [...args, ...defaultParameters(program.slice(0, 6), args)] : args;
    }

    // ---- mongod and mongos options ----

    // What both programs have in common: identity, port, saved options of an earlier run.
    function place(given) {
        let merged = { ...(given || {}) };
        const earlier = runOf(merged.restart);
        if (earlier !== undefined) {
            merged = { ...(MongoRunner.savedOptions[earlier] || {}), ...merged, runId: earlier };
        } else if (merged.restart && merged.runId && MongoRunner.savedOptions[merged.runId]) {
            merged = { ...MongoRunner.savedOptions[merged.runId], ...merged };
        }
        merged.runId = merged.runId || new ObjectId();
        merged.port = Number(merged.port || allocatePort());
        merged.pathOpts = { ...(merged.pathOpts || {}), port: merged.port, runId: merged.runId.str };
        getBinVersionFor(merged.binVersion);
        return merged;
    }
    // `restart` may name the run to repeat: by its connection or by its id.
    function runOf(restart) {
        if (isConnection(restart) || (restart && restart.runId)) return restart.runId;
        return restart instanceof ObjectId ? restart : undefined;
    }

    function withLog(merged, kind) {
        if (merged.useLogFiles && !merged.logFile && !merged.logpath) merged.logFile = `$dataRoot/${kind}-$port.log`;
        if (merged.logFile || merged.logpath) {
            merged.logpath = toRealPath(merged.logpath || merged.logFile, merged.pathOpts);
        }
        if (!merged.bind_ip && !merged.bind_ip_all) merged.bind_ip = "0.0.0.0";
        return merged;
    }

    function mongodOptions(given) {
        const merged = place(given);
        merged.dbpath = toRealDir(merged.dbpath || "$dataRoot/mongod-$port", merged.pathOpts);
        if (merged.noJournal) merged.nojournal = "";
        delete merged.noJournal;
        if (merged.noReplSet) merged.replSet = null;
        if (merged.arbiter) delete merged.arbiter;
        return withLog(merged, "mongod");
    }

    function mongosOptions(given) {
        const merged = place(given);
        merged.pathOpts.mongos = merged.pathOpts.mongos ?? "";
        const { configdb } = merged;
        if (typeof configdb === "number") merged.configdb = `localhost:${configdb}`;
        else if (isConnection(configdb)) merged.configdb = configdb.host;
        return withLog(merged, "mongos");
    }

    const DEFAULT_OPTIONS = {
        mongod: ["port", "dbpath", "bind_ip"],
        mongos: ["port", "configdb", "bind_ip"],
    };

    // The whole argument vector, the program first. What identifies a server stands before the rest.
    function arrOptions(program, given) {
        const kind = program.startsWith("mongos") ? "mongos" : "mongod";
        const first = DEFAULT_OPTIONS[kind].filter((name) => name in given).map((name) => [name, given[name]]);
        const rest = Object.entries(given).filter(([name]) => !DEFAULT_OPTIONS[kind].includes(name));
        return [program, ...toArguments(Object.fromEntries([...first, ...rest]))];
    }

    // The options that an argument vector, the program first, stands for. Parameters of the server become one document.
    function arrToOpts(args) {
        const given = {};
        for (let i = 1; i < args.length; i++) {
            const arg = String(args[i]);
            if (!arg.startsWith("-")) continue;
            const name = arg.replace(/^--?/, "");
            const value = i + 1 < args.length && !String(args[i + 1]).startsWith("-") ? String(args[++i]) : "";
            if (name === "setParameter") {
                const [parameter, ...rest] = value.split("=");
                given.setParameter = { ...given.setParameter, [parameter]: rest.join("=") };
            } else if (/^v+$/.test(name)) given.verbose = name.length;
            else given[name] = value;
        }
        return given;
    }

    // ---- running ----

    function prepareDirectory(merged) {
        const keep = merged.noCleanData || (merged.restart && !merged.startClean && !merged.cleanData);
        if (keep) mkdir(merged.dbpath);
        else resetDbpath(merged.dbpath);
    }

    // Starts a program and returns what is known of it before it answers.
    function launch(program, merged) {
        if (program === "mongod") prepareDirectory(merged);
        const commandLine = arrOptions(program, merged);
        const args = completeArguments(commandLine);
        const pid = _startMongoProgram(merged.env ? { args, env: merged.env } : { args });
        const name = `${hostFor(merged)}:${merged.port}`;
        const server = {
            pid: Number(pid), port: merged.port, name, host: name, runId: merged.runId, dbpath: merged.dbpath,
            commandLine, fullOptions: merged, isServer: true,
        };
        if (merged.remember !== false && !merged.noRemember) {
            const { restart, ...saved } = merged;
            MongoRunner.savedOptions[merged.runId] = saved;
            server.savedOptions = saved;
        }
        return server;
    }

    function stopErrorIfEnded(pid) {
        const state = checkProgram(pid);
        if (!state.alive) throw new StopError(Number(state.exitCode));
    }

    // Polls until the port answers. A program that ends first is a StopError with its exit code.
    function awaitConnection({ pid, port, host, timeout = START_TIMEOUT_MS }) {
        const address = host || `localhost:${port}`;
        const deadline = Date.now() + timeout;
        for (;;) {
            if (pid !== undefined) stopErrorIfEnded(pid);
            try {
                return new Mongo(address);
            } catch (error) {
                if (Date.now() > deadline) {
                    throw new Error(`the program on port ${port} does not answer on ${address}: ${error.message}`);
                }
            }
            sleep(POLL_MS);
        }
    }

    // A connection that carries what its server was started with, as tests expect of one. With a bridge it goes through that one.
    function connectTo(direct, timeout, bridge) {
        const first = awaitConnection({ pid: direct.pid, port: direct.port, host: direct.name, timeout });
        if (bridge !== undefined) first.close();
        const server = bridge === undefined
            ? direct : { ...direct, port: bridge.port, name: bridge.host, host: bridge.host, ownPort: direct.port };
        const connection = bridge === undefined
            ? first : bridge._dress(awaitConnection({ pid: server.pid, port: server.port, host: server.name, timeout }));
        for (const [name, value] of Object.entries(server)) {
            if (name !== "host" && name !== "isServer") connection[name] = value;
        }
        if (connection.host !== server.name) {
            try { connection.host = server.name; } catch (e) { /* the name it was opened under stays */ }
        }
        return connection;
    }

    function startServer(program, merged) {
        const server = launch(program, merged);
        return merged.waitForConnect === false ? unconnected(server) : connectTo(server);
    }
    function unconnected(server) {
        server.getDB = function () {
            throw new Error(`no connection: the server on port ${server.port} was started with waitForConnect: false`);
        };
        return server;
    }

    // ---- stopping ----

    class StopError extends Error {
        constructor(returnCode) {
            super("MongoDB process stopped with exit code: " + returnCode);
            this.name = "StopError";
            this.returnCode = returnCode;
        }
    }

    function portOf(server) {
        // A server behind a bridge is ended by the port that it listens on itself.
        const port = typeof server === "object" && server !== null ? server.ownPort ?? server.port : server;
        if (port === undefined || port === null) throw new Error("no port of a server to stop in " + tojson(server));
        return Number(port);
    }
    const signalOf = (signal) => (signal === undefined || signal === null ? 15 : Number(signal));

    function checkExit(code, signal, given) {
        if (given.skipValidatingExitCode) return code;
        const killed = signal === 9 ? EXIT_CODES.EXIT_SIGKILL : undefined;
        const allowed = given.allowedExitCode !== undefined ? given.allowedExitCode : EXIT_CODES.EXIT_CLEAN;
        const fine = Array.isArray(allowed) ? allowed.includes(code) : code === Number(allowed);
        if (fine || code === killed || (given.allowedExitCodes || []).includes(code)) return code;
        throw new StopError(code);
    }

    // Sends the signal, and with `waitpid` waits for the end and judges the exit code.
    function stopServer(server, signal, given, waitpid) {
        const number = signalOf(signal);
        const settings = given || {};
        const port = portOf(server);
        if (number === 15 && !settings.skipValidation && options().skipCollectionAndIndexValidation !== true) {
            MongoRunner.validateCollectionsCallback(port, settings);
        }
        const pid = server && server.pid !== undefined ? server.pid : undefined;
        const wait = waitpid === undefined ? settings.waitpid !== false : waitpid;
        const code = Number(_stopMongoProgram(port, number, settings, wait));
        if (typeof server === "object" && server !== null) server.stoppedPid = pid;
        return wait ? checkExit(code, number, settings) : code;
    }

    // Signals all, then waits for all: stopping a cluster takes as long as its slowest member.
    function stopTogether(servers, signal, given) {
        const number = signalOf(signal);
        servers.forEach((server) => stopServer(server, number, given, false));
        const failures = [];
        for (const server of servers) {
            try {
                checkExit(Number(waitMongoProgram(portOf(server))), number, given || {});
            } catch (error) {
                failures.push(`port ${portOf(server)}: ${error.message}`);
            }
        }
        if (failures.length > 0) throw new Error("not every server stopped cleanly: " + failures.join("; "));
    }

    // ---- MongoRunner ----

    const MongoRunner = {
        ...EXIT_CODES,
        dataPath,
        dataDir: dataPath + "db",
        savedOptions: {},
        StopError,
        runMongod(given) {
            return startServer("mongod", mongodOptions(given));
        },
        runMongos(given) {
            return startServer("mongos", mongosOptions(given));
        },
        stopMongod: (server, signal, given, waitpid) => stopServer(server, signal, given, waitpid),
        stopMongos: (server, signal, given, waitpid) => stopServer(server, signal, { skipValidation: true, ...given }, waitpid),
        // Replaced by tests and hooks that look at every collection before a server ends.
        validateCollectionsCallback(port, settings) {},
        isMongod: (server) => /^mongod/.test(programOf((server && server.commandLine) || [""])),
        runMongoTool(program, given, ...positional) {
            const args = [program, ...toArguments(given || {}), ...positional];
            return Number(_runMongoProgram(...completeArguments(args)));
        },
        runningChildPids: () => [..._runningMongoChildProcessIds()].map(Number),
        allocatePort,
        allocatePorts: (count) => Array.from({ length: count }, allocatePort),
        toRealPath,
        toRealFile: (path, given) => toRealPath(path, given),
        toRealDir,
        mongodOptions,
        mongosOptions,
        arrOptions,
        arrToOpts,
        parsePort: _parsePort,
        awaitConnection,
        getBinVersionFor,
        compareBinVersions,
        areBinVersionsTheSame,
        binVersionSubs: [],
        logicalOptions: Object.fromEntries([...LAUNCHER_OPTIONS].map((name) => [name, true])),
        getAndPrepareDumpDirectory: (testName) => emptyDirectory("dump", testName),
        getAndPrepareExternalDirectory: (testName) => emptyDirectory("external", testName),
        getExternalFileName: (testName) => MongoRunner.dataPath + "external/" + testName,
        getMongoShellPath: () => "mongo",
        // A test that hangs is looked at by the runner.
        runHangAnalyzer: Object.assign(() => {}, { enable() {}, disable() {} }),
        getExtensionPath() {
            throw new Error("extensions of the server are not supported here");
        },
        // For the fixtures of sets and clusters.
        _launch: launch,
        _connectTo: connectTo,
        _stopTogether: stopTogether,
        _hostFor: hostFor,
    };
    MongoRunner.VersionSub = function (pattern, replacement) {
        this.pattern = pattern;
        this.version = replacement;
    };
    MongoRunner.versionIterator = function (list) {
        const names = Array.isArray(list) ? list : [...arguments];
        return { isVersionIterator: true, current: names[0], advance() {}, toString: () => names[0] };
    };

    function emptyDirectory(kind, testName) {
        const path = `${MongoRunner.dataPath}${kind}_${testName}/`;
        resetDbpath(path);
        return path;
    }

    // ---- programs by their bare arguments ----

    function flatten(list) {
        return list.length === 1 && Array.isArray(list[0]) ? list[0] : [...list];
    }

    // Starts `program ...args` and returns its pid.
    function startMongoProgramNoConnect(...list) {
        return Number(_startMongoProgram({ args: completeArguments(flatten(list)) }));
    }
    // Starts a server and waits for it; its port is read from the arguments.
    function startMongoProgram(...list) {
        const args = completeArguments(flatten(list));
        const port = _parsePort(...args);
        const pid = Number(_startMongoProgram({ args }));
        const connection = awaitConnection({ pid, port });
        return Object.assign(connection, { pid, port, commandLine: args, name: connection.host });
    }
    function runMongoProgram(...list) {
        return Number(_runMongoProgram(...completeArguments(flatten(list))));
    }
    // A mongod on a fresh directory under dataPath; with `restart` the directory is kept.
    function startMongodTest(port, directory, restart, extra = {}) {
        const dbpath = toRealDir(directory || `mongod-${port}`);
        return MongoRunner.runMongod({ port, dbpath, noCleanData: Boolean(restart), ...extra });
    }

    const valueAfter = (args, flag) => {
        const at = args.indexOf(flag);
        return at >= 0 ? args[at + 1] : undefined;
    };
    function _parsePath(...args) {
        const path = valueAfter(args, "--dbpath");
        if (path === undefined) throw new Error("No dbpath specified");
        return path;
    }
    function _parsePort(...args) {
        const port = valueAfter(args, "--port");
        if (port === undefined) throw new Error("No port specified");
        return Number(port);
    }

    // ---- parallel shells ----

    const unjoined = new Map();

    // The source of a call of `fn` with these arguments, for startParallelShell. The shell waits for the promise of an
    // asynchronous one.
    function funWithArgs(fn, ...args) {
        return `(${fn.toString()})(${args.map(literal).join(",")});`;
    }
    // An expression that evaluates to the value. What `tojson` spells is one, but for MinKey and MaxKey.
    function literal(value) {
        if (Array.isArray(value)) return `[${value.map(literal).join(",")}]`;
        if (isPlain(value)) return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}:${literal(one)}`).join(",")}}`;
        if (bsonWoCompare({ v: value }, { v: MinKey }) === 0) return "MinKey";
        return bsonWoCompare({ v: value }, { v: MaxKey }) === 0 ? "MaxKey" : tojson(value);
    }
    const isPlain = (value) => value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;

    function sourceOf(code) {
        if (Array.isArray(code)) return funWithArgs(...code);
        return typeof code === "function" ? funWithArgs(code) : String(code);
    }

    function shellAddress(port) {
        const connected = typeof db === "object" && db !== null && typeof db.getMongo === "function";
        if (!connected) return port ? ["--port", String(port)] : [];
        const host = String(db.getMongo().host);
        if (port) return ["--host", host.split(",")[0].split("/").pop().replace(/:\d+$/, ""), "--port", String(port)];
        if (host.includes("/")) return ["--host", host];
        const [, name, number] = /^(.*?)(?::(\d+))?$/.exec(host);
        return ["--host", name, ...(number ? ["--port", number] : [])];
    }

    // Starts this program as another shell that runs `code`: text, a function, or [function, ...arguments]. Returns the
    // function that waits for it; unless told otherwise, that fails when the shell did.
    globalThis.startParallelShell = function (code, port, noConnect, ...flags) {
        const args = ["mongo"];
        const address = noConnect ? [] : shellAddress(port);
        const lines = [`globalThis.TestData = ${tojson(globalThis.TestData || {})};`];
        if (noConnect || address.length === 0) args.push("--nodb");
        else {
            args.push(...address);
            if (typeof db === "object" && db !== null && db.getName() !== "test") {
                lines.push(`db = db.getSiblingDB(${JSON.stringify(db.getName())});`);
            }
        }
        args.push(...flags.flat().map(String), "--eval", lines.join("\n") + "\n" + sourceOf(code));
        const pid = Number(startMongoProgramNoConnect(...args));
        unjoined.set(pid, true);
        return function ({ checkExitSuccess = true } = {}) {
            const exitCode = Number(waitProgram(pid));
            unjoined.delete(pid);
            if (checkExitSuccess) assert.eq(0, exitCode, "encountered an error in the parallel shell");
            return exitCode;
        };
    };
    globalThis.uncheckedParallelShellPidsString = () => [...unjoined.keys()].join(", ");

    // Whether two connection strings name the same hosts in the same order, a set's name aside.
    function connectionURLTheSame(left, right) {
        const hosts = (url) => String(url).split("/").pop().split(",").map(canonical).sort().join(",");
        const canonical = (host) => host.replace(/^(localhost|127\.0\.0\.1)(?=:|$)/, getHostName());
        return left === right || hosts(left) === hosts(right);
    }

    Object.assign(globalThis, {
        MongoRunner, startMongoProgram, startMongoProgramNoConnect, runMongoProgram, startMongodTest, _parsePath, _parsePort,
        funWithArgs, connectionURLTheSame, allocatePort,
        allocatePorts: MongoRunner.allocatePorts,
        // Ports are not given out twice, so there is nothing to take back.
        resetAllocatedPorts() {},
        createMongoArgs: (program, given) => [program, ...toArguments(given)],
        myPort: () => Number(/:(\d+)$/.exec(db.getMongo().host)?.[1] ?? 27017),
        stopMongod: (port, signal, given) => MongoRunner.stopMongod(port, signal, given),
        stopMongoProgram: (port, signal, given) => Number(_stopMongoProgram(port, signalOf(signal), given || {}, true)),
    });
})();
