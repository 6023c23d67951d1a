// Leaves everything behind that cleaning must undo.
assert.commandWorked(db.left.insert({_id: 1}));
assert.commandWorked(db.getSiblingDB("another").left.insert({_id: 1}));
assert.commandWorked(db.adminCommand({setParameter: 1, logLevel: 1}));
assert.commandWorked(db.adminCommand({
    configureFailPoint: "failCommand",
    mode: "alwaysOn",
    data: {failCommands: ["ping", "find", "listDatabases", "dropDatabase", "getParameter"], errorCode: 8},
}));
