/**
 * Operators compare what the members of a set say of themselves and of each other: each line tells of its own member, in its state.
 * It fails if a line lacks a field or has one of another kind of member, if what it tells is not that member's, or if a member that
 * was removed answers as one of the set.
 *
 * @tags: [requires_own_servers]
 */
import {insert, reconfig, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {members: {1: {priority: 0}, 2: {arbiterOnly: true}}});
const [primary, secondary, arbiter] = [rst.getPrimary(), rst.nodes[1], rst.nodes[2]];
assert.eq(rst.nodes[0], primary);
assert.commandWorked(primary.adminCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: 1}}));
assert.commandWorked(insert(primary, [{_id: 0}], {w: 2}));

const status = (node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1}));
const own = (node) => status(node).members.find((m) => m.self);
const config = () => assert.commandWorked(primary.adminCommand({replSetGetConfig: 1})).config;
const names = (line) => Object.keys(line).sort();
const isNull = (optime) => bsonWoCompare(optime, {ts: Timestamp(0, 0), t: NumberLong(-1)}) === 0;

const WALLS = ["lastAppliedWallTime", "lastDurableWallTime", "lastWrittenWallTime"];
const COMMON = ["_id", "name", "health", "state", "stateStr", "uptime", "syncSourceHost", "syncSourceId", "infoMessage",
    "configVersion", "configTerm", "lastHeartbeatMessage"];
const DATA = ["optime", "optimeDate", "optimeWritten", "optimeWrittenDate", ...WALLS];
const PEER = ["lastHeartbeat", "lastHeartbeatRecv", "pingMs"];
const PEER_DATA = [...DATA, "optimeDurable", "optimeDurableDate"];
const ELECTED = ["electionTime", "electionDate"];

// Whom a member follows, and for a while that it has chosen it.
assert.soon(() => own(secondary).syncSourceHost === primary.host && own(secondary).syncSourceId === 0, () => tojson(own(secondary)), 60000);
assert.eq("syncing from: " + primary.host, own(secondary).infoMessage);

// Which fields there are.
assert.eq([...COMMON, ...DATA, ...ELECTED, "self"].sort(), names(own(primary)));
assert.eq([...COMMON, ...DATA, "self"].sort(), names(own(secondary)));
assert.eq([...COMMON, "self"].sort(), names(own(arbiter)));
assert.soon(() => row(secondary, primary).state === 1 && row(arbiter, primary).state === 1);
assert.eq([...COMMON, ...PEER, ...PEER_DATA, ...ELECTED].sort(), names(row(secondary, primary)));
assert.eq([...COMMON, ...PEER, ...PEER_DATA].sort(), names(row(primary, secondary)));
assert.eq([...COMMON, ...PEER].sort(), names(row(primary, arbiter)));

// A member tells the same of itself as the others tell of it, once nothing is written any more.
for (const node of rst.nodes) {
    for (const asked of rst.nodes.filter((n) => n !== node)) {
        const fields = ["_id", "name", "health", "state", "stateStr", "syncSourceHost", "syncSourceId", "configVersion", "configTerm", "electionTime"];
        const told = (line) => tojson(fields.map((name) => line[name]));
        assert.soon(() => told(own(node)) === told(row(asked, node)),
            () => `${tojson(own(node))} is told as ${tojson(row(asked, node))} by ${asked.host}`, 60000);
        const line = row(asked, node);
        assert(line.pingMs instanceof NumberLong && Number(line.pingMs) >= 0, tojson(line));
        assert.soon(() => row(asked, node).lastHeartbeat > line.lastHeartbeat && row(asked, node).lastHeartbeatRecv > line.lastHeartbeatRecv);
    }
}
assert.eq("", own(primary).syncSourceHost);
for (const node of rst.nodes) {
    const told = status(node);
    assert.eq([2, 3, 2], [told.majorityVoteCount, told.votingMembersCount, told.writableVotingMembersCount], node.host);
    assert.eq(config().version, own(node).configVersion);
}

// A set says from where its members would go on after a restart.
for (const node of [primary, secondary]) {
    assert.soon(() => bsonWoCompare({t: status(node).lastStableRecoveryTimestamp || 0}, {t: Timestamp(0, 0)}) > 0, () => tojson(status(node)), 60000);
    const told = status(node);
    assert.lte(bsonWoCompare({t: told.lastStableRecoveryTimestamp}, {t: told.optimes.lastCommittedOpTime.ts}), 0, tojson(told));
}

// One that copies has no position, neither to itself nor to others, and tells of its copy.
const held = {"failpoint.initialSyncHangBeforeCopyingDatabases": tojson({mode: "alwaysOn"})};
const added = rst.add({setParameter: held});
assert.commandWorked(reconfig(rst, (c) => c.members.push({_id: 3, host: added.host, votes: 0, priority: 0})));
assert.commandWorked(added.adminCommand({waitForFailPoint: "initialSyncHangBeforeCopyingDatabases", timesEntered: 1, maxTimeMS: 60 * 1000}));
const copying = status(added);
assert.eq([5, "STARTUP2"], [own(added).state, own(added).stateStr]);
assert(isNull(own(added).optime) && isNull(copying.optimes.durableOpTime) && !("readConcernMajorityOpTime" in copying.optimes), tojson(copying));
assert.eq([0, 10], [copying.initialSyncStatus.failedInitialSyncAttempts, copying.initialSyncStatus.maxFailedInitialSyncAttempts].map(Number));
assert.soon(() => row(primary, added).stateStr === "STARTUP2" && isNull(row(primary, added).optime), () => tojson(row(primary, added)), 60000);
assert.commandWorked(added.adminCommand({configureFailPoint: "initialSyncHangBeforeCopyingDatabases", mode: "off"}));
rst.awaitSecondaryNodes();
assert(!("initialSyncStatus" in status(added)));
assert(!isNull(own(added).optime));

// One that is down has neither position, source nor configuration; when it was last asked, and what came of it, is told.
rst.stop(3, undefined, {skipValidation: true}, {forRestart: true});
assert.soon(() => row(primary, added).health === 0, () => tojson(row(primary, added)), 60000);
const down = row(primary, added);
assert.eq([8, "(not reachable/healthy)", 0, "", -1, -1, -1],
    [down.state, down.stateStr, down.uptime, down.syncSourceHost, down.syncSourceId, down.configVersion, down.configTerm], tojson(down));
assert(isNull(down.optime) && isNull(down.optimeDurable) && isNull(down.optimeWritten), tojson(down));
assert.neq("", down.lastHeartbeatMessage);
assert.soon(() => row(primary, added).lastHeartbeat > down.lastHeartbeat);
assert.eq(down.lastHeartbeatRecv, row(primary, added).lastHeartbeatRecv);
rst.restart(3);
assert.soon(() => row(primary, added).stateStr === "SECONDARY" && row(primary, added).lastHeartbeatMessage === "", undefined, 60000);

// One that was removed speaks of itself alone.
assert.commandWorked(reconfig(rst, (c) => c.members = c.members.filter((m) => m._id !== 3)));
let said;
assert.soonNoExcept(() => (said = rst.nodes[3].adminCommand({replSetGetStatus: 1})).ok === 0, "it is one of the set", 60000);
assert.commandFailedWithCode(said, ErrorCodes.InvalidReplicaSetConfig);
assert.eq("Our replica set config is invalid or we are not a member of it", said.errmsg);
assert.soonNoExcept(() => (said = rst.nodes[3].adminCommand({replSetGetStatus: 1})).state === 10, () => tojson(said), 60000);
assert.eq(["REMOVED", "", "", -1], [said.stateStr, said.lastHeartbeatMessage, said.syncSourceHost, said.syncSourceId], tojson(said));
assert(!isNull(said.optime) && said.optimeDate instanceof Date && !("members" in said), tojson(said));
assert.eq(3, status(primary).members.length);
rst.stopSet(undefined, false, {skipCheckDBHashes: true, skipValidation: true});
