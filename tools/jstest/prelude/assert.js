// Assertions. Each either returns or throws an Error whose message says what was expected and what was found, ending
// with the test's own words. An error about a server's reply carries `code`, `res` and `writeErrors`.
//
// The test's own words (`msg`) may be text, a function that makes the text only when it is needed, or an object.
(function (global) {
    "use strict";

    const SOON_TIMEOUT_MS = 90 * 1000;
    const SOON_TIMEOUT_IN_CI_MS = 10 * 60 * 1000;
    const SOON_INTERVAL_MS = 200;

    const text = value => global.tojson(value);
    // Kept here, since a test may well have a `compare` of its own.
    const compare = global.compare;

    function wordsOf(msg) {
        if (typeof msg === "function") return String(msg());
        return typeof msg === "object" && msg !== null ? text(msg) : String(msg);
    }

    /** A mistake in the test itself is told at once, not when the assertion happens to fail. */
    function checkWords(msg) {
        if (msg === undefined || msg === null || ["string", "function", "object"].includes(typeof msg)) return;
        global.doassert("msg parameter must be a string, function or object, found type " + typeof msg);
    }

    /** The test's words with what it has attached to them. */
    function attached(msg, attributes) {
        if (attributes === undefined) return msg;
        return () => (msg === undefined ? "" : wordsOf(msg) + " ") + global.tojsononeline(attributes);
    }

    function sentence(found, msg) {
        return msg === undefined || msg === null || msg === "" ? found : found + " : " + wordsOf(msg);
    }

    /**
     * Fails the test: throws the message. `source` (a code, a reply or a write result) gives the error its
     * `code` and `res`.
     */
    global.doassert = function doassert(msg, source) {
        const message = wordsOf(msg);
        const error = source === undefined || source === null ? new Error(message) : global._getErrorWithCode(source, message);
        throw error;
    };

    function fail(found, msg, source) {
        global.doassert(sentence(found, msg), source);
    }

    function assert(value, msg, ...more) {
        if (more.length > 1) global.doassert("Too many parameters to assert().");
        checkWords(msg);
        if (!value) fail("assert failed", attached(msg, more[0]));
    }
    global.assert = assert;
    assert._debug = false;

    // Values.

    function compared(first, second, msg, holds, phrase, attributes) {
        checkWords(msg);
        if (!holds) fail(phrase(first, second), attached(msg, attributes));
    }

    assert.eq = (first, second, msg, attributes) => {
        checkWords(msg);
        if (first === second || global.friendlyEqual(first, second)) return;
        fail("[" + text(first) + "] and [" + text(second) + "] are not equal", attached(msg, attributes));
    };
    assert.neq = (first, second, msg, attributes) => {
        checkWords(msg);
        if (first !== second && !global.friendlyEqual(first, second)) return;
        fail("[" + text(first) + "] and [" + text(second) + "] are equal", attached(msg, attributes));
    };

    // Order is by BSON's rules for values JavaScript does not order, such as timestamps and 64-bit integers.
    function order(first, second) {
        const plain = value => ["number", "string", "boolean"].includes(typeof value);
        if (first instanceof Date && second instanceof Date) return compare(first.getTime(), second.getTime());
        if (plain(first) && plain(second)) return compare(first, second);
        return bsonWoCompare({v: first}, {v: second});
    }
    const unordered = (first, second) => Number.isNaN(first) || Number.isNaN(second);

    function orderAssertion(words, holds) {
        return (first, second, msg, attributes) => compared(first, second, msg, !unordered(first, second) && holds(order(first, second)),
            () => text(first) + " is not " + words + " " + text(second), attributes);
    }
    assert.lt = orderAssertion("less than", sign => sign < 0);
    assert.lte = orderAssertion("less than or eq", sign => sign <= 0);
    assert.gt = orderAssertion("greater than", sign => sign > 0);
    assert.gte = orderAssertion("greater than or eq", sign => sign >= 0);

    assert.between = (low, value, high, msg, inclusive) => {
        const bounds = inclusive === undefined || inclusive === true ? sign => sign <= 0 : sign => sign < 0;
        compared(low, high, msg, bounds(order(low, value)) && bounds(order(value, high)),
            () => text(value) + " is not between " + text(low) + " and " + text(high));
    };
    assert.betweenIn = (low, value, high, msg) => assert.between(low, value, high, msg, true);
    assert.betweenEx = (low, value, high, msg) => assert.between(low, value, high, msg, false);

    /** Equality of floating-point numbers to a number of decimal places of their relative or absolute difference. */
    assert.close = (first, second, msg, places = 4) => {
        const tolerance = 10 ** -places / 2;
        const absolute = Math.abs(first - second);
        const relative = absolute / Math.max(Math.abs(first), Math.abs(second));
        if (first === second || absolute <= tolerance || relative <= tolerance) return;
        fail(first + " is not close to " + second + " within " + tolerance + ", absolute difference: " + absolute +
            ", relative difference: " + relative, msg);
    };
    assert.closeWithinMS = (first, second, msg, deltaMS = 1000) => {
        const difference = Math.abs(first - second);
        if (difference <= deltaMS) return;
        fail(first + " is not equal to " + second + " within " + deltaMS + " millis, actual delta: " + difference + " millis", msg);
    };

    assert.isnull = (value, msg) => {
        checkWords(msg);
        if (value === null || value === undefined) return;
        fail("supposed to be null (" + (msg === undefined ? "" : wordsOf(msg)) + ") was: " + text(value));
    };

    /** Runs an assertion over source text, so that the text is part of the message. */
    assert.automsg = source => assert((0, eval)(source), source);
    assert.eq.automsg = (first, second) =>
        assert.eq((0, eval)(first), (0, eval)(second), "[" + first + "] != [" + second + "]");

    // Documents, arrays and sets.

    // Equal but for the order of fields; values of different numeric types are equal when their numbers are.
    const docEqual = (first, second) => bsonUnorderedFieldsCompare({_: first}, {_: second}) === 0;
    assert._isDocEq = docEqual;

    assert.docEq = (expected, actual, msg, attributes) => {
        checkWords(msg);
        if (docEqual(expected, actual)) return;
        fail("expected document " + text(expected) + " and actual document " + text(actual) + " are not equal", attached(msg, attributes));
    };
    assert.setEq = (expected, actual, msg, attributes) => {
        checkWords(msg);
        if (!(expected instanceof Set)) global.doassert("expected parameter 'expected' to be a Set");
        if (!(actual instanceof Set)) global.doassert("expected parameter 'actual' to be a Set");
        if (expected.size === actual.size && [...expected].every(value => actual.has(value))) return;
        fail("expected set " + text([...expected]) + " and actual set " + text([...actual]) + " are not equal", attached(msg, attributes));
    };

    /** Whether two arrays are equal as multisets under `same`. */
    function sameMembers(first, second, same) {
        if (first.length !== second.length) return false;
        const left = [...second];
        return first.every(value => {
            const at = left.findIndex(other => same(value, other));
            if (at >= 0) left.splice(at, 1);
            return at >= 0;
        });
    }
    function checkArrays(...arrays) {
        for (const array of arrays) {
            if (!Array.isArray(array)) global.doassert("expected an array, found " + typeof array + ": " + text(array));
        }
    }
    assert.sameMembers = (first, second, msg, same = docEqual) => {
        checkWords(msg);
        checkArrays(first, second);
        if (!sameMembers(first, second, same)) fail(text(first) + " != " + text(second), msg);
    };
    /** As `sameMembers`, with the named fields compared to some decimal places only. */
    assert.fuzzySameMembers = (first, second, fuzzyFields, msg, places = 4) => {
        assert.sameMembers(first, second, msg, (one, other) => fuzzyEqual(one, other, new Set(fuzzyFields), places));
    };
    function fuzzyEqual(first, second, fuzzyFields, places) {
        const names = Object.keys(first);
        if (names.length !== Object.keys(second).length) return false;
        return names.every(name => {
            if (!(name in second)) return false;
            if (!fuzzyFields.has(name)) return docEqual(first[name], second[name]);
            const [one, other] = [Number(first[name]), Number(second[name])];
            return one === other || Math.abs(one - other) <= 10 ** -places / 2 * Math.max(1, Math.abs(one), Math.abs(other));
        });
    }
    /** The same documents in the same number, whatever their order; arrays of field names likewise. */
    assert.sameSetsOfFields = (first, second, msg) => {
        const names = value => (Array.isArray(value) ? [...value] : Object.keys(value)).sort();
        if (text(names(first)) !== text(names(second)))
            fail("fields " + text(names(first)) + " and " + text(names(second)) + " are not the same", msg);
    };

    assert.contains = (value, array, msg, attributes) => {
        checkWords(msg);
        checkArrays(array);
        if (!array.some(member => global.friendlyEqual(member, value))) fail(text(value) + " was not in " + text(array), attached(msg, attributes));
    };
    assert.doesNotContain = (value, array, msg, attributes) => {
        checkWords(msg);
        checkArrays(array);
        if (array.some(member => global.friendlyEqual(member, value))) fail(text(value) + " is in " + text(array), attached(msg, attributes));
    };
    assert.containsPrefix = (prefix, array, msg, attributes) => {
        checkWords(msg);
        if (typeof prefix !== "string") global.doassert("containsPrefix first argument should be a string");
        checkArrays(array);
        if (!array.some(member => typeof member === "string" && member.startsWith(prefix)))
            fail(text(prefix) + " was not a prefix in " + text(array), attached(msg, attributes));
    };
    assert.includes = (haystack, needle, msg, attributes) => {
        checkWords(msg);
        if (typeof haystack !== "string" || !haystack.includes(needle))
            fail("string [" + haystack + "] does not include [" + needle + "]", attached(msg, attributes));
    };
    assert.hasFields = (object, names, msg, attributes) => {
        checkWords(msg);
        if (!Array.isArray(names)) global.doassert("The second argument to hasFields must be an array.");
        if (!names.every(name => Object.prototype.hasOwnProperty.call(object, name)))
            fail("Not all of the values from " + text(names) + " were in " + text(object), attached(msg, attributes));
    };
    assert.fieldsEqual = (first, second, fields, msg) => {
        for (const name of fields) assert(docEqual(first[name], second[name]),
            sentence("field " + name + " differs: " + text(first) + " and " + text(second), msg));
    };
    assert.hasOwnProperty = (object, name, msg) => assert.hasFields(object, [name], msg);

    // Time.

    const called = func => typeof func === "string" ? (0, eval)(func) : func();
    const defaultTimeoutMs = () =>
        typeof TestData === "object" && TestData && TestData.inEvergreen ? SOON_TIMEOUT_IN_CI_MS : SOON_TIMEOUT_MS;

    /** Waits until `func` (or source text) is true; an exception ends the wait and the test. */
    assert.soon = (func, msg, timeout = defaultTimeoutMs(), interval = SOON_INTERVAL_MS) => {
        checkWords(msg);
        const limit = timeout || defaultTimeoutMs();
        const start = Date.now();
        for (;;) {
            if (called(func)) return;
            const waited = Date.now() - start;
            if (waited > limit) return fail("assert.soon failed (timeout " + limit + "ms): " + func, msg);
            // Short pauses first: most conditions hold within a few milliseconds.
            sleep(Math.min(interval, Math.max(10, waited / 4)));
        }
    };
    /** A call that turns exceptions which `acceptable` names into "not yet". */
    function tolerant(func, acceptable) {
        return () => {
            try {
                return called(func);
            } catch (error) {
                if (!acceptable(error)) throw error;
                print("caught exception, will retry: " + error);
                return false;
            }
        };
    }
    // The message shows the test's function, not the wrapper.
    function named(wrapper, func) {
        wrapper.toString = () => String(func);
        return wrapper;
    }
    assert.soonNoExcept = (func, msg, timeout, interval) =>
        assert.soon(named(tolerant(func, () => true), func), msg, timeout, interval);
    assert.soonRetryOnNetworkErrors = (func, msg, timeout, interval) =>
        assert.soon(named(tolerant(func, global.isNetworkError), func), msg, timeout, interval);
    assert.soonRetryOnAcceptableErrors = (func, acceptable, msg, timeout, interval) => {
        const codes = Array.isArray(acceptable) ? acceptable : [acceptable];
        assert.soon(named(tolerant(func, error => codes.includes(error.code)), func), msg, timeout, interval);
    };

    /** Calls `func` up to `attempts` times, until it is true. */
    assert.retry = (func, msg, attempts, interval = 0) => {
        checkWords(msg);
        for (let attempt = 1; attempt <= attempts; attempt++) {
            if (called(func)) return;
            print("assert.retry failed on attempt " + attempt + " of " + attempts);
            if (interval && attempt < attempts) sleep(interval);
        }
        fail("assert.retry failed after " + attempts + " attempts: " + func, msg);
    };
    assert.retryNoExcept = (func, msg, attempts, interval) =>
        assert.retry(named(tolerant(func, () => true), func), msg, attempts, interval);

    /** Runs `func` (or source text), which must end within `timeout` milliseconds; returns what it returned. */
    assert.time = (func, msg, timeout = 30 * 1000) => {
        checkWords(msg);
        const start = Date.now();
        const result = called(func);
        const took = Date.now() - start;
        if (took > timeout) fail("assert.time failed timeout " + timeout + "ms took " + took + "ms : " + func, msg);
        return result;
    };
    assert.timeBson = assert.time;

    // Exceptions.

    function caught(func, params, msg) {
        checkWords(msg);
        if (typeof func !== "function") global.doassert("1st argument must be a function");
        const isList = Array.isArray(params) || typeof params === "object" && params !== null && typeof params.length === "number";
        if (params !== undefined && params !== null && !isList) global.doassert("2nd argument must be an Array");
        try {
            func.apply(undefined, params || []);
        } catch (error) {
            return {error};
        }
        return undefined;
    }
    /** The exception `func` throws when called with `params`; fails when it throws none. */
    assert.throws = (func, params, msg, attributes) => {
        const outcome = caught(func, params, msg);
        if (!outcome) fail("did not throw exception", attached(msg, attributes));
        return outcome.error;
    };
    assert.throwsWithCode = (func, codes, params, msg) => {
        if (codes === undefined || codes === null) global.doassert("expectedCode must be a number or an array of numbers");
        const error = assert.throws(func, params, msg);
        const wanted = Array.isArray(codes) ? codes : [codes];
        const code = error === undefined || error === null ? undefined : error.code;
        if (!wanted.some(expected => expected == code)) {
            fail("[" + text(code) + "] is not one of the expected codes " + text(wanted) + ", the exception was: " + error, msg,
                code === undefined ? undefined : code);
        }
        return error;
    };
    assert.doesNotThrow = (func, params, msg) => {
        checkWords(msg);
        let result;
        const outcome = caught((...args) => {
            result = func.apply(undefined, args);
        }, params, msg);
        if (outcome) fail("threw unexpected exception: " + outcome.error, msg, outcome.error);
        return result;
    };
    assert.throws.automsg = source => assert.throws(new Function(source), [], source);
    assert.doesNotThrow.automsg = source => assert.doesNotThrow(new Function(source), [], source);

    /** Runs `func`; an exception with one of the codes is handed to `onDrop` instead of being thrown. */
    assert.dropExceptionsWithCode = (func, codes, onDrop) => {
        const dropped = Array.isArray(codes) ? codes : [codes];
        try {
            return func();
        } catch (error) {
            if (!dropped.some(code => error.code === code || String(error.message).includes("" + code))) throw error;
            return onDrop ? onDrop(error) : undefined;
        }
    };

    // Replies of commands and results of writes.

    const isWriteOutcome = value => value instanceof WriteResult || value instanceof BulkWriteResult ||
        value instanceof WriteError || value instanceof BulkWriteError || value instanceof WriteCommandError;

    function checkReply(reply, msg) {
        checkWords(msg);
        if (reply === null || reply === undefined) fail("result cannot be null or undefined, found " + reply, msg);
        const isKnown = typeof reply === "object" && (reply instanceof Error || isWriteOutcome(reply) || "ok" in reply || "acknowledged" in reply);
        if (!isKnown) fail("unknown type of result, cannot check it: " + typeof reply + " " + text(reply), msg);
    }

    /** What in a reply says that something failed: `command`, `write`, `concern`, or undefined for success. */
    function failureIn(reply, ignored = {}) {
        if (reply instanceof Error && !isWriteOutcome(reply)) return "command";
        if (reply instanceof WriteCommandError || reply instanceof WriteError) return "write";
        if (isWriteOutcome(reply)) {
            const broken = reply instanceof WriteResult ? reply.hasWriteError() : reply.hasWriteErrors();
            if (broken && !ignored.write) return "write";
            return reply.hasWriteConcernError() && !ignored.concern ? "concern" : undefined;
        }
        if ("ok" in reply && !Number(reply.ok)) return "command";
        if (!ignored.write && (Array.isArray(reply.writeErrors) && reply.writeErrors.length || reply.hasWriteErrors === true)) return "write";
        return reply.writeConcernError !== undefined && !ignored.concern ? "concern" : undefined;
    }

    const KIND = {command: "command failed: ", write: "write failed with error: ", concern: "write concern failed with errors: "};

    /** The command a reply answers, which the connection attaches to it. */
    function requestText(reply) {
        const command = reply && reply._commandObj;
        return command === undefined ? "" : " with original command request: " + text(command);
    }
    function errorText(reply) {
        const raw = reply && reply.errmsg !== undefined ? " with errmsg: " + reply.errmsg : "";
        return requestText(reply) + raw;
    }

    function worked(reply, msg, ignored) {
        checkReply(reply, msg);
        const kind = failureIn(reply, ignored);
        if (kind) fail(KIND[kind] + (reply instanceof Error && !isWriteOutcome(reply) ? String(reply) : text(reply)) + errorText(reply), msg, reply);
        return reply;
    }

    /** Every code a reply or an error carries, at its top and in its write errors. */
    function codesIn(reply) {
        const codes = [];
        const add = holder => {
            if (holder && holder.code !== undefined) codes.push(holder.code);
        };
        add(reply);
        const raw = isWriteOutcome(reply) && reply.getRawResponse ? reply.getRawResponse() : reply;
        add(raw);
        if (isWriteOutcome(reply)) {
            if (reply.getWriteError) add(reply.getWriteError());
            if (reply.getWriteErrors) reply.getWriteErrors().forEach(add);
            if (reply.getWriteConcernError) add(reply.getWriteConcernError());
        }
        if (raw) {
            if (Array.isArray(raw.writeErrors)) raw.writeErrors.forEach(add);
            if (Array.isArray(raw.writeConcernErrors)) raw.writeConcernErrors.forEach(add);
            add(raw.writeConcernError);
        }
        return codes;
    }
    const wantedCodes = codes => (Array.isArray(codes) ? codes : [codes]).filter(code => code !== undefined);
    const hasCode = (reply, codes) => codesIn(reply).some(code => codes.some(wanted => wanted == code));

    function checkCodes(codes, msg) {
        if (wantedCodes(codes).length === 0) fail("expected code(s) to be a number or an array of numbers, found " + text(codes), msg);
    }

    function failed(reply, codes, msg, phrase) {
        checkReply(reply, msg);
        if (!failureIn(reply)) fail(phrase + text(reply) + requestText(reply), msg, reply);
        if (codes !== undefined && !hasCode(reply, wantedCodes(codes))) {
            fail("command did not fail with any of the following codes " + text(wantedCodes(codes)) + " " +
                (reply instanceof Error && !isWriteOutcome(reply) ? String(reply) : text(reply)) + errorText(reply), msg, reply);
        }
        return reply;
    }
    const WORKED_INSTEAD = "command worked when it should have failed: ";

    assert.commandWorked = (reply, msg) => worked(reply, msg);
    assert.commandWorkedIgnoringWriteErrors = (reply, msg) => worked(reply, msg, {write: true});
    assert.commandWorkedIgnoringWriteConcernErrors = (reply, msg) => worked(reply, msg, {concern: true});
    assert.commandWorkedIgnoringWriteErrorsAndWriteConcernErrors = (reply, msg) => worked(reply, msg, {write: true, concern: true});
    assert.commandWorkedOrFailedWithCode = (reply, codes, msg) => {
        checkReply(reply, msg);
        return failureIn(reply) ? assert.commandFailedWithCode(reply, codes, msg) : reply;
    };
    assert.commandFailed = (reply, msg) => failed(reply, undefined, msg, WORKED_INSTEAD);
    assert.commandFailedWithCode = (reply, codes, msg) => {
        checkCodes(codes, msg);
        return failed(reply, codes, msg, WORKED_INSTEAD);
    };

    assert.writeOK = (reply, msg, {ignoreWriteConcernErrors} = {}) => worked(reply, msg, {concern: ignoreWriteConcernErrors});
    assert.writeError = (reply, msg) => failed(reply, undefined, msg, "no write error: ");
    assert.writeErrorWithCode = (reply, codes, msg) => {
        checkCodes(codes, msg);
        return failed(reply, codes, msg, "no write error: ");
    };
    assert.writeOKOrErrorWithCode = assert.writeOKOrFailedWithCode = assert.commandWorkedOrFailedWithCode;
    /** Performs a write, again after each network or retryable error, until it works. */
    assert.writeOKOrRetry = (write, msg, attempts = 10, pauseMs = 200) => {
        for (let left = attempts; ; left--) {
            let outcome;
            try {
                outcome = write();
            } catch (error) {
                outcome = error;
            }
            if (left <= 1 || !failureIn(outcome) || !global.isRetryableError(outcome)) return worked(outcome, msg);
            sleep(pauseMs);
        }
    };

    /** Sends an admin command whose reply may be lost because it ends or disturbs the server. */
    assert.adminCommandWorkedAllowingNetworkError = (node, command) => {
        const reply = global.executeNoThrowNetworkError(() => node.adminCommand(command));
        if (reply) assert.commandWorked(reply);
        return reply;
    };
    assert.adminCommandWorked = (node, command, msg) => assert.commandWorked(node.adminCommand(command), msg);
    assert.adminCommandFailedWithCode = (node, command, codes, msg) =>
        assert.commandFailedWithCode(node.adminCommand(command), codes, msg);

    // The replies of the getLastError family, `err` null for success.
    const lastError = source => typeof source.getLastErrorObj === "function" ? source.getLastErrorObj() :
        typeof source.getDB === "function" && source.getMongo === undefined ? source.getDB("test").getLastErrorObj() : source;
    assert.gleOK = assert.gleSuccess = (source, msg) => {
        const reply = lastError(source);
        if (reply.err) fail("getLastError not null: " + text(reply), msg, reply);
        return reply;
    };
    assert.gleError = (source, msg) => {
        const reply = lastError(source);
        if (!reply.err) fail("getLastError is null: " + text(reply), msg);
        return reply;
    };
    assert.gleErrorCode = (source, code, msg) => {
        const reply = assert.gleError(source, msg);
        if (reply.code !== code) fail("getLastError's code is not " + code + ": " + text(reply), msg, reply);
    };
    assert.gleErrorRegex = (source, pattern, msg) => {
        const reply = assert.gleError(source, msg);
        if (!pattern.test(reply.err)) fail("getLastError doesn't match " + pattern + ": " + text(reply), msg, reply);
    };

    /** Refuses a command that carries parameters of the stable API. */
    assert.noAPIParams = command => {
        for (const name of ["apiVersion", "apiStrict", "apiDeprecationErrors"])
            assert(command[name] === undefined, "API parameter " + name + " in " + text(command));
    };
    assert.always = (func, msg, timeout = 5000, interval = SOON_INTERVAL_MS) => {
        const end = Date.now() + timeout;
        do {
            if (!called(func)) fail("assert.always failed: " + func, msg);
            sleep(interval);
        } while (Date.now() < end);
    };

    // Under these names they stand in the stack of a failure.
    for (const name of Object.keys(assert)) {
        if (typeof assert[name] === "function") Object.defineProperty(assert[name], "name", {value: "assert." + name, configurable: true});
    }
})(globalThis);
