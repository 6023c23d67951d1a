/**
 * Parameters of the server are read and changed while it runs.
 * Fails when a changed parameter keeps its value, the old one is not reported, or an unknown or unfit one is taken.
 */
function get(request) {
    return db.adminCommand(Object.assign({getParameter: 1}, request));
}
function set(request) {
    return db.adminCommand(Object.assign({setParameter: 1}, request));
}

const before = assert.commandWorked(get({logLevel: 1})).logLevel;
try {
    assert.eq(before, assert.commandWorked(set({logLevel: 2})).was);
    assert.eq(2, get({logLevel: 1}).logLevel);
} finally {
    assert.eq(2, assert.commandWorked(set({logLevel: before})).was);
}

// Several at once, and all of them.
const several = assert.commandWorked(get({logLevel: 1, quiet: 1}));
assert.eq(before, several.logLevel);
assert.eq("boolean", typeof several.quiet);
const all = assert.commandWorked(db.adminCommand({getParameter: "*"}));
assert.eq(before, all.logLevel);
assert.lt(20, Object.keys(all).length);

const details = assert.commandWorked(db.adminCommand({getParameter: {showDetails: true}, logLevel: 1})).logLevel;
assert.eq({value: before, settableAtRuntime: true, settableAtStartup: true}, details);

assert.commandFailedWithCode(get({}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(get({noSuchParameter: 1}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(set({}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(set({noSuchParameter: 1}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(set({logLevel: "loud"}), [ErrorCodes.BadValue, ErrorCodes.TypeMismatch, ErrorCodes.FailedToParse]);
assert.commandFailedWithCode(db.runCommand({getParameter: 1, logLevel: 1}), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(db.runCommand({setParameter: 1, logLevel: 1}), ErrorCodes.Unauthorized);
assert.eq(before, get({logLevel: 1}).logLevel);
