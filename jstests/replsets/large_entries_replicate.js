/**
 * What a primary takes the others can fetch: a transaction of many small operations just below the size of an entry, and a document as
 * deep as one may be.
 * It fails if the other members stop at such an entry.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const testDB = primary.getDB("d");
const session = primary.startSession();
const inSession = session.getDatabase("d");
assert.commandWorked(testDB.createCollection("c"));
const majority = {writeConcern: {w: 3, wtimeout: 60000}};

session.startTransaction();
const padding = "x".repeat(150);
for (let batch = 0; batch < 60; batch++) {
    const documents = [...Array(1000).keys()].map((i) => ({_id: batch * 1000 + i, padding: padding}));
    assert.commandWorked(inSession.runCommand({insert: "c", documents: documents}));
}
assert.commandWorked(session.commitTransaction_forTesting());
assert.commandWorked(testDB.runCommand({insert: "after", documents: [{_id: 1}], ...majority}));

let deep = 1;
for (let i = 0; i < 196; i++) {
    deep = {a: deep};
}
assert.commandWorked(testDB.runCommand({insert: "deep", documents: [{_id: 1, deep: deep}], ...majority}));
session.endSession();
rst.stopSet();
