// Helpers for tests of replica sets.
export function reconnect(conn) {
    const admin = (conn.getMongo ? conn.getMongo() : conn).getDB("admin");
    assert.soonNoExcept(() => admin.runCommand({ ping: 1 }).ok === 1, "no connection to " + conn.host);
}
export const getLatestOp = (server) => server.getDB("local").getCollection("oplog.rs").find().sort({ $natural: -1 }).limit(1).toArray()[0] ?? null;
export const getLeastRecentOp = (server) => server.getDB("local").getCollection("oplog.rs").find().sort({ $natural: 1 }).limit(1).toArray()[0] ?? null;
export function wait(condition, message) {
    assert.soon(condition, message, 5 * 60 * 1000, 20);
}
export function occasionally(fn, interval) {
    if (Math.random() < 1 / (interval || 5)) fn();
}
export function waitForAllMembers(db, timeout) {
    assert.soon(() => {
        const { members } = assert.commandWorked(db.adminCommand({ replSetGetStatus: 1 }));
        return members.every((member) => member.health === 1 && [1, 2, 7].includes(member.state));
    }, "not all members are healthy", timeout, 20);
}
export function reconfig(set, config, force, expectedError) {
    const version = set.getReplSetConfigFromNode().version + 1;
    const reply = set.getPrimary().adminCommand({ replSetReconfig: { ...config, version }, ...(force ? { force: true } : {}) });
    if (expectedError !== undefined) assert.commandFailedWithCode(reply, expectedError);
    else assert.commandWorked(reply);
    return set.getPrimary().getDB("admin");
}
export function getLastOpTime(conn) {
    return assert.commandWorked(conn.adminCommand({ replSetGetStatus: 1 })).optimes.appliedOpTime;
}
export function setLogVerbosity(conns, components) {
    conns.forEach((conn) => assert.commandWorked(conn.adminCommand({ setParameter: 1, logComponentVerbosity: components })));
}
export const setFailPoint = (node, failPoint, data = {}) => assert.commandWorked(node.adminCommand({ configureFailPoint: failPoint, mode: "alwaysOn", data }));
export const clearFailPoint = (node, failPoint) => assert.commandWorked(node.adminCommand({ configureFailPoint: failPoint, mode: "off" }));
export function awaitRSClientHosts(conn, hosts, hostOk, rs, timeout) {
    ReplSetTest.awaitRSClientHosts(conn, hosts, hostOk, rs, timeout);
}
