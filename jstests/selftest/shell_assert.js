/**
 * Every assertion must pass on what it accepts and throw, with its documented message, on what it refuses: a test whose
 * assertions cannot fail proves nothing. An assertion that returned without comparing would fail here.
 */
(function() {
"use strict";

/** The message of the error that `func` must throw. */
function refusal(func) {
    let error;
    try {
        func();
    } catch (e) {
        error = e;
    }
    if (error === undefined) throw new Error("nothing was thrown by " + func);
    return error;
}
function says(func, ...parts) {
    const error = refusal(func);
    for (const part of parts) {
        if (!error.message.includes(part)) throw new Error("'" + error.message + "' does not say '" + part + "'");
    }
    return error;
}

// The plain form, and the test's own words as text, function and object.
assert(true);
assert(1, "never shown");
says(() => assert(false), "assert failed");
says(() => assert(0, "own words"), "assert failed : own words");
says(() => assert(null, () => "made " + "late"), "assert failed : made late");
says(() => assert("", {reason: 1}), 'assert failed : { "reason" : 1 }');
says(() => assert.eq(1, 1, 17), "msg parameter must be a string, function or object");
let made = 0;
assert.eq(1, 1, () => made++);
if (made !== 0) throw new Error("the words of a passing assertion were made");

// Equality.
assert.eq(1, 1);
assert.eq(1, NumberLong(1));
assert.eq(NumberInt(7), 7);
assert.eq({a: NumberInt(1)}, {a: 1});
assert.eq("a", "a");
assert.eq([1, {b: 2}], [1, {b: 2}]);
assert.eq(ISODate("2020-01-01"), new Date(Date.UTC(2020, 0, 1)));
assert.eq(NaN, NaN);
assert.eq({a: -0}, {a: 0});
assert.eq(null, undefined);
says(() => assert.eq(1, 2), "[1] and [2] are not equal");
says(() => assert.eq({a: 1}, {a: 2}, "words"), '[{ "a" : 1 }] and [{ "a" : 2 }] are not equal : words');
says(() => assert.eq({a: 1, b: 1}, {b: 1, a: 1}), "are not equal");
says(() => assert.eq({a: NumberLong(1)}, {a: 1}), "are not equal");
says(() => assert.eq({a: null}, {}), "are not equal");
says(() => assert.eq({a: 1}, {a: "1"}), "are not equal");
assert.neq(1, 2);
assert.neq({a: 1}, {a: 2});
says(() => assert.neq({a: 1}, {a: 1}, "words"), "are equal : words");
says(() => assert.neq(3, NumberLong(3)), "[3] and [NumberLong(3)] are equal");
assert.eq.automsg("1 + 1", "2");
says(() => assert.eq.automsg("1 + 1", "3"), "[1 + 1] != [3]");
says(() => assert.automsg("1 === 2"), "1 === 2");

// Order, also of values that JavaScript does not order.
assert.lt(1, 2);
assert.lte(2, 2);
assert.gt("b", "a");
assert.gte(2, 2);
assert.lt(NumberLong("9007199254740992"), NumberLong("9007199254740993"));
assert.gt(Timestamp(2, 0), Timestamp(1, 5));
assert.lt(ISODate("2020-01-01"), ISODate("2020-01-02"));
assert.gte(ISODate("2020-01-02"), ISODate("2020-01-02"));
assert.gt(NumberLong(3), 2);
says(() => assert.lt(2, 2, "w"), "2 is not less than 2 : w");
says(() => assert.lte(3, 2), "3 is not less than or eq 2");
says(() => assert.gt(2, 2), "2 is not greater than 2");
says(() => assert.gte(1, 2), "1 is not greater than or eq 2");
says(() => assert.lt(Timestamp(2, 0), Timestamp(2, 0)), "Timestamp(2, 0) is not less than Timestamp(2, 0)");
says(() => assert.lte(NaN, 1), "is not less than or eq");
assert.between(1, 1, 2);
assert.betweenIn(1, 2, 2);
assert.betweenEx(1, 1.5, 2);
says(() => assert.between(1, 3, 2), "3 is not between 1 and 2");
says(() => assert.betweenEx(1, 1, 2), "1 is not between 1 and 2");
assert.close(1.00001, 1.00002);
says(() => assert.close(1.0, 1.1), "is not close to");
assert.closeWithinMS(new Date(1000), new Date(1500));
says(() => assert.closeWithinMS(new Date(1000), new Date(9000)), "8000");

// Documents, sets and arrays.
assert.docEq({a: 1, b: 2}, {b: 2, a: 1});
assert.docEq({a: 1}, {a: NumberLong(1)});
says(() => assert.docEq({a: [1, 2]}, {a: [2, 1]}, "w"), "expected document", "and actual document", "are not equal : w");
assert.setEq(new Set([1, 2]), new Set([2, 1]));
says(() => assert.setEq(new Set([1]), new Set([2])), "expected set [ 1 ] and actual set [ 2 ] are not equal");
says(() => assert.setEq([1], new Set([1])), "to be a Set");
assert.sameMembers([1, 2, 2], [2, 1, 2]);
assert.sameMembers([{a: 1, b: 1}], [{b: 1, a: 1}]);
says(() => assert.sameMembers([1, 2, 2], [1, 1, 2], "w"), "[ 1, 2, 2 ] != [ 1, 1, 2 ] : w");
says(() => assert.sameMembers([1], [1, 1]), "!=");
says(() => assert.sameMembers({}, []), "array");
assert.fuzzySameMembers([{a: 1.00001, b: 1}], [{a: 1.00002, b: 1}], ["a"]);
says(() => assert.fuzzySameMembers([{a: 1.00001, b: 1}], [{a: 1.00002, b: 1}], ["b"]), "!=");
assert.contains(2, [1, 2]);
assert.contains({a: 1}, [{a: 1}]);
says(() => assert.contains(3, [1, 2], "w"), "3 was not in [ 1, 2 ] : w");
assert.doesNotContain(3, [1, 2]);
says(() => assert.doesNotContain(2, [1, 2]), "2 is in [ 1, 2 ]");
assert.containsPrefix("ab", ["xy", "abc"]);
says(() => assert.containsPrefix("b", ["abc"]), '"b" was not a prefix in [ "abc" ]');
assert.includes("haystack", "st");
says(() => assert.includes("haystack", "needle"), "string [haystack] does not include [needle]");
assert.hasFields({a: 1, b: 2}, ["a"]);
says(() => assert.hasFields({a: 1}, ["a", "b"]), "Not all of the values from");
says(() => assert.hasFields({a: 1}, "a"), "must be an array");
assert.sameSetsOfFields({a: 1, b: 1}, {b: 2, a: 2});
says(() => assert.sameSetsOfFields({a: 1}, {b: 1}), "are not the same");
assert.isnull(null);
assert.isnull(undefined);
says(() => assert.isnull(0, "zero"), "supposed to be null (zero) was: 0");

// Exceptions.
const thrown = assert.throws(() => { throw new Error("inner"); });
assert.eq("inner", thrown.message);
assert.eq(3, assert.throws((a, b) => { throw a + b; }, [1, 2]));
says(() => assert.throws(() => 1, [], "w"), "did not throw exception : w");
says(() => assert.throws(1), "1st argument must be a function");
says(() => assert.throws(() => { throw 1; }, "not an array"), "2nd argument must be an Array");
const coded = () => { throw Object.assign(new Error("x"), {code: 26}); };
assert.eq(26, assert.throwsWithCode(coded, 26).code);
assert.throwsWithCode(coded, [1, 26]);
says(() => assert.throwsWithCode(coded, 27), "26", "27");
says(() => assert.throwsWithCode(() => {}, 27), "did not throw exception");
assert.eq(5, assert.doesNotThrow(x => x, [5]));
says(() => assert.doesNotThrow(() => { throw new Error("oops"); }, [], "w"), "threw unexpected exception", "oops", "w");
assert.eq("dropped", assert.dropExceptionsWithCode(coded, 26, () => "dropped"));
says(() => assert.dropExceptionsWithCode(coded, 27), "x");

// Waiting.
let calls = 0;
assert.soon(() => ++calls === 3, "never", 5000, 1);
assert.eq(3, calls);
says(() => assert.soon(() => false, "w", 50, 10), "assert.soon failed", "timeout 50ms", ": w");
says(() => assert.soon(() => { throw new Error("inside"); }, "w", 1000, 10), "inside");
calls = 0;
assert.soonNoExcept(() => { if (++calls < 3) throw new Error("not yet"); return true; }, "w", 5000, 1);
assert.eq(3, calls);
says(() => assert.soonNoExcept(() => { throw new Error("always"); }, "w", 50, 10), "assert.soon failed");
calls = 0;
assert.retry(() => ++calls === 2, "w", 3);
says(() => assert.retry(() => false, "w", 2), "assert.retry failed", "2 attempts", ": w");
assert.retryNoExcept(() => { if (++calls < 4) throw new Error("not yet"); return true; }, "w", 5);
says(() => assert.retryNoExcept(() => { throw new Error("always"); }, "w", 2), "2 attempts");
assert.eq(9, assert.time(() => 9, "w", 1000));
says(() => assert.time(() => sleep(60), "w", 10), "assert.time failed timeout 10ms");

// Replies.
const good = {ok: 1}, bad = {ok: 0, code: 26, codeName: "NamespaceNotFound", errmsg: "ns not found"};
const written = {ok: 1, n: 0, writeErrors: [{index: 0, code: 11000, errmsg: "E11000 duplicate key"}]};
const unconfirmed = {ok: 1, n: 1, writeConcernError: {code: 64, errmsg: "waiting for replication timed out"}};
assert.eq(good, assert.commandWorked(good));
const failure = says(() => assert.commandWorked(bad, "w"), "command failed: ", "ns not found", "w");
assert.eq(26, failure.code);
assert.eq("NamespaceNotFound", failure.codeName);
assert.eq(bad, failure.res);
assert.eq(11000, says(() => assert.commandWorked(written), "write failed with error: ").code);
assert.eq(64, says(() => assert.commandWorked(unconfirmed), "write concern failed").code);
says(() => assert.commandWorked(undefined), "result cannot be null or undefined");
says(() => assert.commandWorked("text"), "unknown type of result");
says(() => assert.commandWorked({n: 1}), "unknown type of result");
says(() => assert.commandFailed({code: 26}), "unknown type of result");
assert.commandWorked({acknowledged: true, insertedId: 1});
assert.commandWorkedIgnoringWriteErrors(written);
says(() => assert.commandWorkedIgnoringWriteErrors(bad), "command failed");
says(() => assert.commandWorkedIgnoringWriteErrors(unconfirmed), "write concern failed");
assert.commandWorkedIgnoringWriteConcernErrors(unconfirmed);
says(() => assert.commandWorkedIgnoringWriteConcernErrors(written), "write failed");
assert.eq(bad, assert.commandFailed(bad));
assert.commandFailed(written);
says(() => assert.commandFailed(good, "w"), "command worked when it should have failed", "w");
assert.commandFailedWithCode(bad, 26);
assert.commandFailedWithCode(bad, [1, 26]);
assert.commandFailedWithCode(written, 11000);
assert.commandFailedWithCode(unconfirmed, 64);
assert.commandFailedWithCode(Object.assign(new Error("e"), {code: 7}), 7);
says(() => assert.commandFailedWithCode(bad, 27, "w"), "did not fail with any of the following codes", "27", "w");
says(() => assert.commandFailedWithCode(good, 27), "command worked when it should have failed");
says(() => assert.commandFailedWithCode(bad, undefined), "expected code");
assert.commandWorkedOrFailedWithCode(good, 26);
assert.commandWorkedOrFailedWithCode(bad, 26);
says(() => assert.commandWorkedOrFailedWithCode(bad, 27), "any of the following codes");
assert.writeOK(good);
says(() => assert.writeOK(written), "write failed with error");
assert.writeOK(unconfirmed, "w", {ignoreWriteConcernErrors: true});
assert.writeError(written);
says(() => assert.writeError(good, "w"), "no write error: ", "w");
assert.writeErrorWithCode(written, 11000);
assert.writeErrorWithCode(written, [1, 11000]);
says(() => assert.writeErrorWithCode(written, 1), "any of the following codes");
assert.gleOK({err: null});
says(() => assert.gleOK({err: "broken", code: 5}), "getLastError not null");
assert.gleErrorCode({err: "broken", code: 5}, 5);
says(() => assert.gleErrorCode({err: "broken", code: 5}, 6), "code is not 6");
assert.gleErrorRegex({err: "broken"}, /bro/);
says(() => assert.gleErrorRegex({err: "broken"}, /xyz/), "doesn't match");
says(() => doassert("said", 121), "said");
assert.eq(121, refusal(() => doassert("said", 121)).code);
assert.eq("made", refusal(() => doassert(() => "made")).message);
})();
