// Waits for a query that a fail point holds for longer than the test may take.
assert.commandWorked(db.held.insert({_id: 1}));
assert.commandWorked(db.adminCommand({
    configureFailPoint: "failCommand",
    mode: "alwaysOn",
    data: {failCommands: ["find"], blockConnection: true, blockTimeMS: 600000},
}));
print("the query is under way");
db.held.find({_id: 1}).comment("held on purpose").itcount();
