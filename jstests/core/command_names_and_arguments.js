/**
 * Every command is found by its name and takes the arguments that all commands take.
 * Fails when an unknown command is answered, a known one is missing in listCommands, or a generic argument is refused.
 */
const commands = assert.commandWorked(db.runCommand({listCommands: 1})).commands;
for (const name of ["find", "insert", "update", "delete", "aggregate", "getMore", "killCursors", "count", "distinct",
                    "findAndModify", "create", "drop", "createIndexes", "dropIndexes", "listIndexes", "listCollections",
                    "listDatabases", "collMod", "explain", "hello", "ping", "serverStatus", "currentOp", "killOp"]) {
    assert(commands.hasOwnProperty(name), name);
    for (const field of ["help", "requiresAuth", "adminOnly"]) {
        assert(commands[name].hasOwnProperty(field), () => tojson({[name]: commands[name]}));
    }
}

let reply = db.runCommand({noSuchCommand: 1});
assert.commandFailedWithCode(reply, ErrorCodes.CommandNotFound);
assert.eq("CommandNotFound", reply.codeName);
assert.eq("no such command: 'noSuchCommand'", reply.errmsg);
// Names are told apart by case.
assert.commandFailedWithCode(db.runCommand({FIND: "x"}), ErrorCodes.CommandNotFound);
assert.commandFailedWithCode(db.runCommand({}), [ErrorCodes.CommandNotFound, ErrorCodes.BadValue, ErrorCodes.FailedToParse]);

reply = db.runCommand({listDatabases: 1});
assert.commandFailedWithCode(reply, ErrorCodes.Unauthorized);
assert.eq("listDatabases may only be run against the admin database.", reply.errmsg);

// What every command takes.
assert.commandWorked(db.runCommand({ping: 1, comment: {any: ["thing"]}}));
assert.commandWorked(db.runCommand({ping: 1, $readPreference: {mode: "primary"}}));
assert.commandWorked(db.runCommand({ping: 1, maxTimeMS: 10000}));
assert.commandFailedWithCode(db.runCommand({ping: 1, $readPreference: {mode: "nearby"}}), [ErrorCodes.FailedToParse, ErrorCodes.BadValue]);
assert.commandFailedWithCode(db.runCommand({ping: 1, $readPreference: {mode: "primary", tags: [{x: "y"}]}}), ErrorCodes.BadValue);

// The versioned interface.
assert.commandWorked(db.runCommand({ping: 1, apiVersion: "1"}));
assert.commandWorked(db.runCommand({find: "x", apiVersion: "1", apiStrict: true}));
assert.commandFailedWithCode(db.runCommand({ping: 1, apiVersion: "2"}), ErrorCodes.APIVersionError);
assert.commandFailedWithCode(db.runCommand({ping: 1, apiStrict: true}), 4886600);
assert.commandFailedWithCode(db.runCommand({distinct: "x", key: "a", apiVersion: "1", apiStrict: true}), ErrorCodes.APIStrictError);
