// @tags: [requires_own_servers]
// Waits for a query on a server of its own.
const node = MongoRunner.runMongod({});
const held = node.getDB("test").held;
assert.commandWorked(held.insert({_id: 1}));
assert.commandWorked(node.adminCommand({
    configureFailPoint: "failCommand",
    mode: "alwaysOn",
    data: {failCommands: ["find"], blockConnection: true, blockTimeMS: 600000},
}));
held.find({_id: 1}).comment("held on purpose").itcount();
