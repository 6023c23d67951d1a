// Assertions. Equality is the natives' comparison of BSON.
var doassert = function(message) {
    throw new Error(message);
};
var assert = function(condition, message) {
    if (!condition) {
        doassert("assert failed" + (message ? ": " + message : ""));
    }
};
assert.eq = function(expected, found, message) {
    if (bsonWoCompare({v: expected}, {v: found}) !== 0) {
        doassert(tojson(expected) + " != " + tojson(found) + (message ? " : " + message : ""));
    }
};
assert.throws = function(action, message) {
    try {
        action();
    } catch (error) {
        return error;
    }
    doassert("did not throw" + (message ? ": " + message : ""));
};
assert.soon = function(condition, message, timeoutMs = 30000) {
    const end = Date.now() + timeoutMs;
    while (!condition()) {
        if (Date.now() > end) {
            doassert("not soon" + (message ? ": " + message : ""));
        }
        sleep(5);
    }
};
assert.commandWorked = function(reply) {
    assert(reply.ok === 1, tojson(reply));
    return reply;
};
