// The test's own environment: its options and name, its log, comparison of values as tests see them, random numbers,
// what counts as a network or a retryable error, and ways to go on after one.
(function (global) {
    "use strict";

    // Errors.

    /**
     * An error that carries what a server said: `source` is a code, a reply, or a write result. `code`, `codeName`,
     * `errorLabels`, `writeErrors` and `writeConcernError` are taken over, and `res` is the reply itself.
     */
    global._getErrorWithCode = function _getErrorWithCode(source, message) {
        const error = new Error(message);
        if (typeof source === "number") {
            error.code = source;
            return error;
        }
        if (source === null || typeof source !== "object") return error;
        const raw = typeof source.getRawResponse === "function" ? source.getRawResponse() : source;
        if (source.code !== undefined) error.code = source.code;
        for (const name of ["codeName", "errorLabels", "writeErrors", "writeConcernError", "errInfo"]) {
            if (raw && raw[name] !== undefined) error[name] = raw[name];
        }
        const writeErrors = error.writeErrors;
        if (error.code === undefined && Array.isArray(writeErrors) && writeErrors.length) error.code = writeErrors[0].code;
        if (error.code === undefined && error.writeConcernError) error.code = error.writeConcernError.code;
        Object.defineProperty(error, "res", {value: source, enumerable: false, writable: true, configurable: true});
        Object.defineProperty(error, "extraInfo", {value: raw, enumerable: false, writable: true, configurable: true});
        return error;
    };

    /** The reply itself; an error that begins with `words` and ends with the reply when it is not ok. */
    global._checkedReply = function _checkedReply(reply, words) {
        if (!reply.ok) throw global._getErrorWithCode(reply, words + ": " + global.tojson(reply));
        return reply;
    };

    const codeOf = value => value !== null && typeof value === "object" ? value.code : value;
    const isCode = value => typeof value === "number";

    function saysNetwork(value) {
        const text = typeof value === "string" ? value : value && (value.message || value.errmsg);
        if (typeof text !== "string") return false;
        return /network error|error doing query|socket exception|connection (closed|refused|reset)|couldn't connect/i.test(text);
    }

    /** Whether an error, reply, code or message tells that the connection broke. */
    global.isNetworkError = function (value) {
        if (value === null || value === undefined) return false;
        if (isCode(codeOf(value)) && ErrorCodes.isNetworkError(codeOf(value))) return true;
        return typeof value !== "number" && saysNetwork(value);
    };
    /** Whether a write that failed this way may be sent once more. */
    global.isRetryableError = function (value) {
        if (value === null || value === undefined) return false;
        return isCode(codeOf(value)) && ErrorCodes.isRetriableError(codeOf(value)) || typeof value === "object" && saysNetwork(value);
    };

    function retryWhile(retryable, func, retries, pauseMs) {
        for (let left = retries; ; left--) {
            try {
                return func();
            } catch (error) {
                if (!retryable(error) || left <= 0) throw error;
                print("Retrying after " + (error.message || error));
                sleep(pauseMs);
            }
        }
    }

    global.retryOnNetworkError = (func, retries = 1, pauseMs = 1000) =>
        retryWhile(global.isNetworkError, func, retries, pauseMs);
    global.retryOnRetryableError = (func, retries = 1, pauseMs = 1000, further = []) =>
        retryWhile(error => global.isRetryableError(error) || further.includes(error.code), func, retries, pauseMs);

    /** What `func` returns; false when the connection broke; any other error is thrown on. */
    global.executeNoThrowNetworkError = function (func) {
        try {
            return func();
        } catch (error) {
            if (!global.isNetworkError(error)) throw error;
            return false;
        }
    };

    /** Runs a command and throws, with the reply, unless it worked. */
    global.executeCommand = function (database, command) {
        const reply = database.runCommand(command);
        return global._checkedReply(reply, "Command failed");
    };

    /** Pings a database until its connection, which reconnects by itself, answers again. */
    global.reconnect = function (database) {
        global.assert.soon(() => {
            try {
                database.runCommand({ping: 1});
                return true;
            } catch (error) {
                return false;
            }
        }, "unable to reconnect", 60 * 1000);
    };

    // Comparison.

    const comparable = value => global.tojson(value, "", false)
        .replace(/NumberInt\((-?\d+)\)/g, "$1").replace(/(: |\t|\[ )-0(?![\d.])/g, "$10");

    /** Equality as tests see it: values that are loosely equal or print the same, an int32 like a plain number. */
    global.friendlyEqual = function (first, second) {
        if (first == second) return true;
        return comparable(first) === comparable(second);
    };

    /** A copy of a document with the fields of every level in alphabetical order, and members of arrays sorted inside. */
    global.sortDoc = function sortDoc(value) {
        if (Array.isArray(value)) return value.map(sortDoc);
        if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) return value;
        const sorted = {};
        for (const name of Object.keys(value).sort()) sorted[name] = sortDoc(value[name]);
        return sorted;
    };

    global.timestampCmp = (first, second) =>
        Math.sign(first.getTime() - second.getTime()) || Math.sign(first.getInc() - second.getInc());

    // The test.

    /** Options the runner passes in `TestData`, with what holds without it. */
    function optionsOf(data) {
        const defaults = {
            serviceExecutor: undefined,
            setParameters: {}, setParametersMongos: {}, mongodOptions: {},
            storageEngine: "", wiredTigerEngineConfigString: "",
            enableTestCommands: 1, enableEncryption: false,
            noJournal: false, auth: undefined, keyFile: undefined, adminUser: "admin", adminPassword: "password",
            authUser: "__system", authPassword: "", authMechanism: "SCRAM-SHA-256",
            roleGraphInvalidationIsFatal: false, undoRecorderPath: undefined,
            backupOnRestartDir: false, minPort: undefined, useRandomBinVersionsWithinReplicaSet: false,
            networkMessageCompressors: undefined, replSetFeatureCompatibilityVersion: undefined,
            skipEnforceFastCountOnValidate: false, skipValidationOnInvalidViewDefinitions: true,
            skipCollectionAndIndexValidation: false, skipValidationOnNamespaceNotFound: true,
            skipValidationNamespaces: [], skipCheckingUUIDsConsistentAcrossCluster: false,
            skipCheckingIndexesConsistentAcrossCluster: false, skipCheckOrphans: false,
            skipCheckDBHashes: false, skipCheckRoutingTableConsistency: false, skipCheckMetadataConsistency: false,
            skipCheckShardFilteringMetadata: false,
            mixedBinVersions: "", mongosBinVersion: "", shardMixedBinVersions: false,
            logComponentVerbosity: undefined, logRetryAttempts: false, connectionString: undefined, isMongos: false,
            evergreenTaskId: undefined,
        };
        return Object.assign(defaults, data);
    }

    // The runner replaces it by the options it has; a test without a runner finds none.
    if (typeof global.TestData !== "object" || global.TestData === null) global.TestData = {};

    /** The options of this test: `TestData` over the defaults. Changes to the result change `TestData`'s view at once. */
    global.jsTestOptions = function () {
        const data = typeof global.TestData === "object" && global.TestData ? global.TestData : (global.TestData = {});
        if (!data._optionsComplete) {
            const complete = optionsOf(data);
            Object.assign(data, complete);
            Object.defineProperty(data, "_optionsComplete", {value: true, enumerable: false});
        }
        return data;
    };
    global.setJsTestOption = (name, value) => {
        global.jsTestOptions()[name] = value;
    };

    global.jsTestName = () => global.jsTestOptions().testName || "__unknown_name__";

    const withAttributes = (message, attributes) =>
        attributes === undefined ? String(message) : message + " " + global.tojsononeline(attributes);

    /** Prints a message between rules, so that it stands out from the servers' output. */
    global.jsTestLog = function (message, attributes) {
        const text = typeof message === "object" ? global.tojson(message) : withAttributes(message, attributes);
        print("\n\n----\n" + text + "\n----\n\n");
    };

    function logger(level) {
        return (message, attributes) => print("[js_test:" + global.jsTestName() + "] " + level + " " +
            (typeof message === "object" ? global.tojson(message) : withAttributes(message, attributes)));
    }

    const levels = {info: logger("I"), warning: logger("W"), error: logger("E"), debug: logger("D")};

    const jsTest = global.jsTest = {
        ...levels,
        name: global.jsTestName,
        options: global.jsTestOptions,
        setOption: global.setJsTestOption,
        log: Object.assign((message, attributes) => global.jsTestLog(message, attributes), levels),
        basename: path => path.split("/").pop(),
        readOnlyUserRoles: ["read"],
        basicUserRoles: ["dbOwner"],
        adminUserRoles: ["root"],
        /** Seeds the random numbers and says with what, so that a failed run can be repeated. */
        randomize(seed) {
            const chosen = seed === undefined ? Date.now() : seed;
            Random.srand(chosen);
            print("Random seed for test : " + chosen);
            return chosen;
        },
        isMongos: connection => connection.getDB("admin").hello().msg === "isdbgrid",
        /** Tries `attempt` until it returns true or `tries` are used up. */
        attempt(options, attempt) {
            const tries = options.tries || 60;
            for (let i = 0; i < tries; i++) {
                if (attempt()) return true;
                sleep(options.interval || 1000);
            }
            if (options.throwsOnFail === false) return false;
            throw new Error("attempt failed after " + tries + " tries: " + (options.desc || attempt));
        },
        authenticate: connection => authenticateIfAsked(connection, options =>
            connection.getDB("admin").auth({user: options.authUser, pwd: options.authPassword, digestPassword: true})),
        authenticateNodes: nodes => nodes.forEach(node => jsTest.authenticate(node)),
    };

    /** Logs in when the test runs with authentication; a failure to do so is the test's to notice. */
    function authenticateIfAsked(connection, login) {
        const options = global.jsTestOptions();
        if (!options.auth && !options.keyFile) {
            connection.authenticated = true;
            return true;
        }
        try {
            connection.authenticated = Boolean(login(options));
        } catch (error) {
            print("Caught exception while authenticating connection: " + error);
            connection.authenticated = false;
        }
        return connection.authenticated;
    }

    // Random numbers: the natives' generator, so that a seed repeats a run.

    const Random = global.Random = {
        isInitialized: false,
        srand(seed) {
            Random.isInitialized = true;
            return _srand(seed);
        },
        setRandomSeed(seed) {
            const used = Random.srand(seed === undefined ? Date.now() : seed);
            print("setting random seed: " + (used === undefined ? seed : used));
        },
        setRandomFixtureSeed() {
            Random.setRandomSeed();
        },
        rand() {
            if (!Random.isInitialized)
                throw new Error("Random.rand() must be called after Random.setRandomSeed() or Random.srand()");
            return _rand();
        },
        /** A whole number from 0, or from the first bound, up to but without the last bound. */
        randInt(first, second) {
            const [low, high] = second === undefined ? [0, first] : [first, second];
            return low + Math.floor(Random.rand() * (high - low));
        },
        randElement: array => array[Random.randInt(array.length)],
        genExp: mean => {
            let uniform = Random.rand();
            while (uniform === 0) uniform = Random.rand();
            return -Math.log(uniform) * mean;
        },
        genNormal(mean, deviation) {
            // The Box-Muller transform of two uniform numbers.
            const radius = Math.sqrt(-2 * Math.log(1 - Random.rand()));
            return mean + deviation * radius * Math.cos(2 * Math.PI * Random.rand());
        },
    };

    // Geometry.

    function coordinates(point) {
        if (Array.isArray(point)) return {x: point[0], y: point[1]};
        const named = Object.values(point);
        return {x: "x" in point ? point.x : named[0], y: "y" in point ? point.y : named[1]};
    }
    const radians = degrees => degrees * Math.PI / 180;
    global.Geo = {
        distance(first, second) {
            const [from, to] = [coordinates(first), coordinates(second)];
            return Math.hypot(to.x - from.x, to.y - from.y);
        },
        /** The angle in radians between two points given in degrees of longitude and latitude. */
        sphereDistance(first, second) {
            const [from, to] = [coordinates(first), coordinates(second)];
            const halfY = Math.sin(radians(to.y - from.y) / 2);
            const halfX = Math.sin(radians(to.x - from.x) / 2);
            const chord = halfY ** 2 + Math.cos(radians(from.y)) * Math.cos(radians(to.y)) * halfX ** 2;
            return 2 * Math.asin(Math.min(1, Math.sqrt(chord)));
        },
    };

    // Output.

    /** Runs a function and returns the lines it printed beside its result: `{output, result}`. */
    const plainPrint = global.print;
    if (typeof plainPrint === "function") {
        plainPrint.captureAllOutput = function (func, args) {
            const output = [];
            const captured = (...parts) => {
                output.push(...parts.map(String).join(" ").split("\n"));
            };
            captured.captureAllOutput = plainPrint.captureAllOutput;
            const before = global.print;
            global.print = captured;
            try {
                return {output, result: func.apply(undefined, args || [])};
            } finally {
                global.print = before;
            }
        };
    }

    global._verboseShell = false;
    global.setVerboseShell = (value = true) => {
        global._verboseShell = value;
    };

    /** Prints what an expression gave, as `--eval` and a prompt do; undefined prints nothing. */
    global.shellPrint = global.shellPrintHelper = function (value) {
        if (value === undefined) return;
        if (value === null || typeof value !== "object") return print(value);
        if (typeof value.shellPrint === "function") return value.shellPrint();
        return print(global.tojson(value));
    };

    global.printStackTrace = () => print(new Error("stack trace").stack);

    // Hosts.

    /** A host and port as one text, with the machine's name in place of a loopback name. */
    global.normalizeHost = host => host.replace(/^(localhost|127\.0\.0\.1)(?=:|$)/, global.getHostName());

    global.hasErrorCode = (reply, codes) => {
        const wanted = Array.isArray(codes) ? codes : [codes];
        return reply.ok === 0 && wanted.includes(reply.code);
    };

    global.isPromise = value => value !== null && typeof value === "object" && typeof value.then === "function";
})(globalThis);
