/**
 * A test that lets the next getMore fail means a client's: members that follow the primary's log ask for more all the time.
 * It fails if a member's getMore uses the fail point up.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 2, settings: {electionTimeoutMillis: 5000}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
const primary = rst.getPrimary(), test = primary.getDB("test");
const majority = {w: 2, wtimeout: 60000};
const write = () => assert.commandWorked(test.runCommand({insert: "c", documents: [{}, {}], writeConcern: majority}));
const more = () => {
    const id = assert.commandWorked(test.runCommand({find: "c", batchSize: 1})).cursor.id;
    return test.runCommand({getMore: id, collection: "c"});
};
const point = (mode) => assert.commandWorked(primary.adminCommand(
    {configureFailPoint: "failGetMoreAfterCursorCheckout", mode, data: {errorCode: 234}}));
for (let i = 0; i < 3; i++) {
    point({times: 1});
    write();
    write();
    assert.commandFailedWithCode(more(), 234);
    assert.commandWorked(more());
}
rst.stopSet();
