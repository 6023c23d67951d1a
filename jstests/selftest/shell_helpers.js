/**
 * The small helpers that tests lean on: arrays, objects, strings, random numbers, geometry, comparison. A helper with
 * another meaning than the legacy shell's would fail here.
 */
(function() {
"use strict";

assert.eq(6, Array.sum([1, 2, 3]));
assert.eq(null, Array.sum([]));
assert.eq(2, Array.avg([1, 2, 3]));
assert.close(Math.sqrt(2 / 3), Array.stdDev([1, 2, 3]));
assert(Array.contains([1, 2], 2));
assert(!Array.contains([1, 2], 3));
assert.eq([1, 2, 3], Array.unique([1, 2, 1, 3, 2]));
assert.sameMembers([1, 2, 3, 4], Array.shuffle([1, 2, 3, 4]));

const target = {a: 1};
assert.eq({a: 2, b: {c: 1}}, Object.extend(target, {a: 2, b: {c: 1}}));
assert.eq({a: 2, b: {c: 1}}, target);
const source = {deep: {list: [1]}};
const copy = Object.extend({}, source, true);
copy.deep.list.push(2);
assert.eq([1], source.deep.list);
assert.eq({a: 1, b: 2}, Object.merge({a: 0, b: 2}, {a: 1}) && Object.merge({a: 0, b: 2}, {a: 1}));
assert.eq(["a", "b"], Object.keySet({a: 1, b: 2}));

assert.eq("  a", "a".pad(3));
assert.eq("a--", "a".pad(3, true, "-"));
assert.eq("a ", "  a ".ltrim());
assert.eq("  a", "  a ".rtrim());
assert.eq("007", (7).zeroPad(3));

const map = new BSONAwareMap();
map.put({a: 1}, "document");
map.put(1, "number");
assert.eq("document", map.get({a: 1}));
assert.eq("number", map.get(1));
assert.eq(null, map.get({a: 2}));
map.put({a: 1}, "replaced");
assert.eq("replaced", map.get({a: 1}));
assert.eq(2, map.values().length);

assert(friendlyEqual({a: [1, NumberInt(2)]}, {a: [1, 2]}));
assert(!friendlyEqual({a: 1, b: 1}, {b: 1, a: 1}));
assert.eq('{ "a" : { "b" : 1, "c" : 2 }, "z" : 0 }', tojson(sortDoc({z: 0, a: {c: 2, b: 1}})));
assert.eq(1, timestampCmp(Timestamp(2, 1), Timestamp(1, 9)));
assert.eq(-1, timestampCmp(Timestamp(2, 1), Timestamp(2, 9)));
assert.eq(0, timestampCmp(Timestamp(2, 1), Timestamp(2, 1)));

Random.setRandomSeed(42);
const first = [Random.randInt(1000), Random.randInt(1000), Random.rand()];
Random.setRandomSeed(42);
assert.eq(first, [Random.randInt(1000), Random.randInt(1000), Random.rand()]);
for (let i = 0; i < 100; i++) {
    const value = Random.randInt(3, 6);
    assert(Number.isInteger(value) && value >= 3 && value < 6, () => "out of bounds: " + value);
    assert.gte(Random.genExp(5), 0);
}

assert.eq(5, Geo.distance([0, 0], [3, 4]));
assert.eq(5, Geo.distance({x: 0, y: 0}, {x: 3, y: 4}));
assert.close(Math.PI / 2, Geo.sphereDistance([0, 0], [90, 0]));

assert(isNetworkError(new Error("network error while attempting to run command 'ping' on host 'a:1'")));
assert(isNetworkError({code: ErrorCodes.HostUnreachable}));
assert(!isNetworkError(new Error("something else")));
assert(isRetryableError({code: ErrorCodes.NotWritablePrimary}));
assert(!isRetryableError({code: ErrorCodes.DuplicateKey}));
let tries = 0;
assert.eq("done", retryOnNetworkError(() => {
    if (++tries === 1) throw new Error("network error");
    return "done";
}, 1, 1));
assert.eq(2, tries);
assert.throws(() => retryOnNetworkError(() => { throw new Error("network error"); }, 1, 1));
tries = 0;
assert.throws(() => retryOnNetworkError(() => { tries++; throw new Error("other"); }, 5, 1));
assert.eq(1, tries);
assert.eq(false, executeNoThrowNetworkError(() => { throw new Error("network error"); }));
assert.eq("DuplicateKey", ErrorCodeStrings[ErrorCodes.DuplicateKey]);

TestData.ownOption = 5;
assert.eq(5, jsTestOptions().ownOption);
assert.eq(5, jsTest.options().ownOption);
assert.eq(jsTestName(), jsTest.name());
assert.eq("b.js", jsTest.basename("a/b.js"));
const printed = print.captureAllOutput(() => jsTestLog("stands out"));
assert.contains("stands out", printed.output);

let total = 0;
assert.gte(Date.timeFunc(() => total++, 10), 0);
assert.eq(10, total);
assert.eq(ISODate("2012-10-17T20:46:22Z"), ObjectId("507f191e810c19729de860ea").getTimestamp());
assert(jsTestOptions().enableTestCommands);
})();
