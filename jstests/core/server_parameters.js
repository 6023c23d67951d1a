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

// The levels of the log's components are one tree, of which a part may be set; the level of all is `logLevel`.
const levels = () => assert.commandWorked(get({logComponentVerbosity: 1})).logComponentVerbosity;
const levelsBefore = levels();
assert.eq(before, levelsBefore.verbosity);
assert.eq(-1, levelsBefore.storage.journal.verbosity);
try {
    const given = {verbosity: 1, storage: {verbosity: 2, journal: {verbosity: 0}}, query: 3};
    assert.eq(levelsBefore, assert.commandWorked(set({logComponentVerbosity: given})).was);
    const now = levels();
    assert.eq([1, 2, 0, 3], [now.verbosity, now.storage.verbosity, now.storage.journal.verbosity, now.query.verbosity]);
    assert.eq(levelsBefore.replication, now.replication);
    assert.eq(1, get({logLevel: 1}).logLevel);
    assert.commandWorked(set({logLevel: 0}));
    assert.eq(0, levels().verbosity);
    for (const bad of [{unheardOf: {verbosity: 1}}, {storage: {query: 1}}, {verbosity: "1"}, {storage: "loud"}]) {
        assert.commandFailedWithCode(set({logComponentVerbosity: bad}), ErrorCodes.BadValue, () => tojson(bad));
    }
    assert.commandFailedWithCode(set({logComponentVerbosity: 1}), ErrorCodes.TypeMismatch);
    assert.eq(2, levels().storage.verbosity);
} finally {
    assert.commandWorked(set({logComponentVerbosity: levelsBefore}));
}
assert.eq(levelsBefore, levels());
