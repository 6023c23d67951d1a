assert.commandWorked(db.adminCommand({ping: 1}));
const names = assert.commandWorked(db.adminCommand({listDatabases: 1})).databases.map(d => d.name);
assert.eq([], names.filter(name => !["admin", "config", "local"].includes(name)));
assert.eq(0, assert.commandWorked(db.adminCommand({getParameter: 1, logLevel: 1})).logLevel);
