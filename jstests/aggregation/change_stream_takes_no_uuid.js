/**
 * A change stream goes on when its collection is dropped and made anew, so it cannot be held to a UUID.
 * It fails if the UUID is passed over in silence, whether there is such a collection or not.
 */
const name = jsTestName();
for (const pipeline of [[{$changeStream: {}}], [{$changeStream: {}}, {$match: {operationType: "insert"}}]]) {
    const command = {aggregate: name, pipeline, cursor: {}, collectionUUID: UUID()};
    assert.commandFailedWithCode(db.runCommand(command), 4928900);
}
