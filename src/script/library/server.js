// What a script on a server finds beside the types: the helpers that the real server's scope has.
(function(global) {
    "use strict";

    const raise = (message) => {
        throw new Error(message);
    };
    global.doassert = (message, object) => raise(object === undefined ? String(message) : message + " : " + tojson(object));
    global.assert = (condition, message) => {
        if (!condition) {
            raise("assert failed" + (message ? " : " + (typeof message === "function" ? message() : message) : ""));
        }
    };
    global.assert.eq = (left, right, message) => {
        if (tojson(left) !== tojson(right)) {
            raise("[" + tojson(left) + "] and [" + tojson(right) + "] are not equal" + (message ? " : " + message : ""));
        }
    };
})(globalThis);
