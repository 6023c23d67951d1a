/**
 * Sessions are written to `config.system.sessions` by the nodes themselves, in a set and in a cluster, and removed when they end. What is gone
 * from there, and is not used, takes its cursors along, also those that do not time out by themselves.
 * It fails if a session is not written without a command or not removed after its end, if a session that has gone leaves a cursor open, if a
 * cursor ends that is in use, if a secondary keeps its sessions for itself, or if the index keeps another expiry than the servers'.
 *
 * @tags: [requires_own_servers]
 */
import {funWithArgs} from "jstests/libs/parallel_shell_helpers.js";
import {extractUUIDFromObject} from "jstests/libs/uuid_util.js";

const setParameter = {disableLogicalSessionCacheRefresh: false, logicalSessionRefreshMillis: 1000};

const stored = (conn) => conn.getDB("config").system.sessions;
const isStored = (conn, lsid) => stored(conn).countDocuments({"_id.id": lsid.id}) === 1;
const status = (conn) => assert.commandWorked(conn.adminCommand({serverStatus: 1}));
const open = (conn, lsid) => assert.commandWorked(
    conn.getDB("test").runCommand({find: "c", batchSize: 1, noCursorTimeout: true, lsid})).cursor.id;

/** Sessions of clients of `conn`: started, used, ended, gone. */
function checkLives(conn) {
    const test = conn.getDB("test");
    const started = assert.commandWorked(test.adminCommand({startSession: 1})).id;
    assert.soon(() => isStored(conn, started), "a session that was started is not written");

    const [kept, gone, ended] = [{id: UUID()}, {id: UUID()}, {id: UUID()}];
    const cursors = [open(conn, kept), open(conn, gone)];
    assert.commandWorked(test.runCommand({find: "c", lsid: ended}));
    assert.soon(() => [kept, gone, ended].every((lsid) => isStored(conn, lsid)), "sessions that were used are not written");
    // In a cluster a shard may write once more what the router has just removed.
    assert.soon(() => {
        assert.commandWorked(test.adminCommand({endSessions: [ended]}));
        return !isStored(conn, ended);
    }, "a session that has ended stays");

    const openOnes = () => Number(status(conn).metrics.cursor.open.noTimeout);
    assert.eq(2, openOnes());
    // One that is written once more, since it was used a moment ago, is removed once more.
    assert.soon(() => {
        stored(conn).deleteOne({"_id.id": gone.id});
        return openOnes() === 1;
    }, "the cursor of a session that is gone stays open");
    assert.commandFailedWithCode(test.runCommand({getMore: cursors[1], collection: "c", lsid: gone}), ErrorCodes.CursorNotFound);
    assert.commandWorked(test.runCommand({getMore: cursors[0], collection: "c", lsid: kept}));
}

/** What serverStatus tells of the jobs. */
function checkCounts(conn) {
    const counts = () => status(conn).logicalSessionRecordCache;
    const before = counts();
    for (const name of ["sessionsCollectionJob", "transactionReaperJob"]) {
        const last = `last${name[0].toUpperCase()}${name.slice(1)}`;
        assert(before[`${last}Timestamp`] instanceof Date, tojson(before));
        assert.gte(before[`${last}DurationMillis`], 0);
        assert.soon(() => counts()[`${name}Count`] > before[`${name}Count`], () => tojson(counts()));
    }
    assert.gte(before.activeSessionsCount, 0);
    assert.gte(before.sessionCatalogSize, 0);
    assert.soon(() => {
        assert.commandWorked(conn.adminCommand({startSession: 1}));
        return counts().lastSessionsCollectionJobEntriesRefreshed > 0;
    }, () => tojson(counts()));
}

/** The index on the `holder` of the collection has its expiry from the servers, whatever it had before. */
function checkExpiry(holder) {
    const expiry = () => Number(stored(holder).getIndexes().find((index) => index.name === "lsidTTLIndex").expireAfterSeconds);
    assert.soon(() => expiry() === 1800);
    assert.commandWorked(holder.getDB("config").runCommand(
        {collMod: "system.sessions", index: {name: "lsidTTLIndex", expireAfterSeconds: 7}}));
    assert.soon(() => expiry() === 1800, "another expiry stays");
}

/** An operation keeps its session and its cursor for as long as it runs, though the session expires again and again. */
function checkLongOperation(conn) {
    const lsid = {id: UUID()};
    const cursor = open(conn, lsid);
    const point = configureFailPoint(conn, "waitAfterPinningCursorBeforeGetMoreBatch", {nss: "test.c"});
    const join = startParallelShell(funWithArgs((cursor, id) => {
        const more = {getMore: cursor, collection: "c", lsid: {id: UUID(id)}};
        assert.commandWorked(db.getSiblingDB("test").runCommand(more));
    }, cursor, extractUUIDFromObject(lsid.id)), conn.port);
    point.wait();
    for (let round = 0; round < 3; round++) {
        stored(conn).deleteOne({"_id.id": lsid.id});
        const runs = () => status(conn).logicalSessionRecordCache.sessionsCollectionJobCount;
        const before = runs();
        assert.soon(() => runs() >= before + 2);
    }
    assert.soon(() => isStored(conn, lsid), "the session of an operation that runs is not written");
    point.off();
    join();
}

/** A session that only a secondary has seen is written by its primary; the secondary's cursors end as on the primary. */
function checkSecondary(primary, secondary) {
    secondary.setSecondaryOk();
    const lsid = {id: UUID()};
    const cursor = open(secondary, lsid);
    assert.soon(() => isStored(primary, lsid), "a session that a secondary has seen is not written");
    assert.soon(() => {
        stored(primary).deleteOne({"_id.id": lsid.id});
        return Number(status(secondary).metrics.cursor.open.noTimeout) === 0;
    }, "the cursor of a session that is gone stays open on the secondary");
    assert.commandFailedWithCode(
        secondary.getDB("test").runCommand({getMore: cursor, collection: "c", lsid}), ErrorCodes.CursorNotFound);
}

const documents = [{_id: 1}, {_id: 2}, {_id: 3}];
const rst = new ReplSetTest({nodes: 2, nodeOptions: {setParameter}});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
rst.awaitSecondaryNodes();
assert.commandWorked(primary.getDB("test").runCommand({insert: "c", documents, writeConcern: {w: 2}}));
checkLives(primary);
checkCounts(primary);
checkExpiry(primary);
checkLongOperation(primary);
checkSecondary(primary, rst.getSecondary());
// Sessions are written while the members are compared.
rst.stopSet(undefined, false, {skipCheckDBHashes: true});

const own = {setParameter};
const st = new ShardingTest({shards: 2, mongos: 1, other: {mongosOptions: own, configOptions: own, rsOptions: own}});
assert.commandWorked(st.s.getDB("test").c.insert(documents));
checkLives(st.s);
checkCounts(st.s);
const holder = [st.rs0, st.rs1].map((rs) => rs.getPrimary()).find((node) => stored(node).getIndexes().length > 0);
checkExpiry(holder);
st.stop();
