/**
 * Sessions are written to `config.system.sessions` by the nodes themselves, in a set and in a cluster; what is gone from there, and is
 * not used, takes its cursors along, also those that do not time out by themselves.
 * It fails if a session is not written without a command, if its end leaves a cursor open, or if a cursor ends before its session.
 *
 * @tags: [requires_own_servers]
 */
const setParameter = {disableLogicalSessionCacheRefresh: false, logicalSessionRefreshMillis: 1000};

/** Checks the sessions of clients of `conn`. */
function check(conn) {
    const test = conn.getDB("test"), stored = conn.getDB("config").system.sessions;
    assert.commandWorked(test.c.insert([{_id: 1}, {_id: 2}, {_id: 3}]));
    const isStored = (lsid) => stored.countDocuments({"_id.id": lsid.id}) === 1;
    const started = assert.commandWorked(test.adminCommand({startSession: 1})).id;
    assert.soon(() => isStored(started), "a session that was started is not written");

    const open = (lsid) => assert.commandWorked(test.runCommand({find: "c", batchSize: 1, noCursorTimeout: true, lsid})).cursor.id;
    const [kept, ended] = [{id: UUID()}, {id: UUID()}];
    const cursors = [open(kept), open(ended)];
    assert.soon(() => isStored(kept) && isStored(ended), "sessions that have cursors are not written");
    const openOnes = () => Number(assert.commandWorked(test.adminCommand({serverStatus: 1})).metrics.cursor.open.noTimeout);
    assert.eq(2, openOnes());
    // One that is written once more, since it was used a moment ago, is removed once more.
    assert.soon(() => {
        stored.deleteOne({"_id.id": ended.id});
        return openOnes() === 1;
    }, "the cursor of a session that is gone stays open");
    assert.commandFailedWithCode(
        test.runCommand({getMore: cursors[1], collection: "c", lsid: ended}), ErrorCodes.CursorNotFound);
    assert.commandWorked(test.runCommand({getMore: cursors[0], collection: "c", lsid: kept}));
}

const rst = new ReplSetTest({nodes: 1, nodeOptions: {setParameter}});
rst.startSet();
rst.initiate();
check(rst.getPrimary());
rst.stopSet();

const own = {setParameter};
const st = new ShardingTest({shards: 2, mongos: 1, other: {mongosOptions: own, configOptions: own, rsOptions: own}});
check(st.s);
st.stop();
