/**
 * A member that has copied everything has the log from the copy on, and says so: a change stream that is to begin before it is
 * refused with ChangeStreamHistoryLost there. A transaction that was prepared during the copy is shown whole when it commits, on
 * the new member too.
 * It fails if a stream passes over events in silence, or if it ends because the log that prepared them was not copied.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 2});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary(), test = primary.getDB("test");
const written = (command, w) => assert.commandWorked(test.runCommand(Object.assign(command, {writeConcern: {w: w}})));
const before = written({insert: "c", documents: [{_id: 1}]}, 2).operationTime;
const fields = {lsid: {id: UUID()}, txnNumber: NumberLong(1), autocommit: false};
assert.commandWorked(test.runCommand(Object.assign({insert: "c", documents: [{_id: 2}, {_id: 3}], startTransaction: true}, fields)));
const say = (command, w) => assert.commandWorked(primary.adminCommand(Object.assign(command, {writeConcern: {w: w}}, fields)));
const prepared = say({prepareTransaction: 1}, 2).prepareTimestamp;
written({insert: "c", documents: [{_id: 4}]}, 2);

const added = rst.add({});
rst.reInitiate();
rst.awaitSecondaryNodes();
added.setSecondaryOk();
written({insert: "c", documents: [{_id: 5}]}, 3);
say({commitTransaction: 1, commitTimestamp: prepared}, 3);
const last = written({insert: "c", documents: [{_id: 6}]}, 3).operationTime;

/** The ids that a stream from `start` shows on a member, up to the last. */
function shown(node, start) {
    const ids = [], stream = node.getDB("test").c.watch([], {startAtOperationTime: start});
    assert.soon(() => {
        while (stream.hasNext()) {
            ids.push(stream.next().documentKey._id);
        }
        return ids.includes(6);
    });
    stream.close();
    return ids;
}
assert.eq([1, 4, 5, 2, 3, 6], shown(primary, before));
assert.commandFailedWithCode(
    added.getDB("test").runCommand({aggregate: "c", pipeline: [{$changeStream: {startAtOperationTime: before}}], cursor: {}}), 286);
assert.eq([4, 5, 2, 3, 6], shown(added, prepared));
assert.eq([6], shown(added, last));

// A read in the past does the log again, over the commit.
const past = assert.commandWorked(added.getDB("test").runCommand(
    {find: "c", sort: {_id: 1}, readConcern: {level: "snapshot", atClusterTime: last}}));
assert.eq([1, 2, 3, 4, 5, 6], past.cursor.firstBatch.map((d) => d._id));
rst.stopSet();
