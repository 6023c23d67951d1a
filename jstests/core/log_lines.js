/**
 * The log is JSON, one object a line, and can be read over the wire.
 * Fails when getLog returns anything else, a message that was logged is missing, or an unknown log is taken.
 */
const names = assert.commandWorked(db.adminCommand({getLog: "*"})).names;
assert.contains("global", names);
assert.contains("startupWarnings", names);

const message = "log_lines " + ObjectId();
assert.commandWorked(db.adminCommand({logMessage: message}));

const reply = assert.commandWorked(db.adminCommand({getLog: "global"}));
assert.lte(reply.log.length, reply.totalLinesWritten);
assert.lte(reply.log.length, 1024);
const lines = reply.log.map(line => JSON.parse(line));
for (const line of lines) {
    assert(line.hasOwnProperty("t") && line.t.hasOwnProperty("$date"), tojson(line));
    assert.contains(line.s, ["F", "E", "W", "I", "D", "D1", "D2", "D3", "D4", "D5"]);
    for (const field of ["c", "id", "ctx", "msg"]) {
        assert(line.hasOwnProperty(field), tojson(line));
    }
}
assert(reply.log.some(line => line.includes(message)), "the message is not in the log");

assert.commandFailedWithCode(db.adminCommand({getLog: "noSuchLog"}), [ErrorCodes.OperationFailed, ErrorCodes.InvalidOptions]);
assert.commandFailedWithCode(db.adminCommand({getLog: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({getLog: "global"}), ErrorCodes.Unauthorized);

// clearLog empties what is kept for reading.
assert.commandWorked(db.adminCommand({clearLog: "global"}));
assert(!assert.commandWorked(db.adminCommand({getLog: "global"})).log.some(line => line.includes(message)));
