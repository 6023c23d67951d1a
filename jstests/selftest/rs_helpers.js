/**
 * `rs` speaks to the set that `db` is connected to.
 * It fails if a helper sends another command, or if a reconfiguration does not count the version up.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({ name: "rs_helpers", nodes: 1, host: "localhost" });
rst.startSet();
globalThis.db = rst.nodes[0].getDB("test");
assert.throws(() => rs.conf());
assert.commandWorked(rs.initiate(rst.getReplSetConfig()));
rst.getPrimary();

assert.eq("rs_helpers", rs.conf()._id);
assert.eq(rs.conf(), rs.config());
assert.eq(1, rs.status().members.length);
assert(rs.hello().isWritablePrimary && rs.isMaster().ismaster);

const config = rs.conf();
config.settings.chainingAllowed = false;
assert.commandWorked(rs.reconfig(config));
assert.eq(config.version + 1, rs.conf().version);
assert.eq(false, rs.conf().settings.chainingAllowed);
// A member that cannot be reached is waited for, and counts for nothing until it has its data.
assert.commandWorked(rs.add("localhost:1"));
assert.commandWorked(rs.remove("localhost:1"));
assert.throws(() => rs.remove("nowhere:1"));
assert.commandFailed(rs.stepDown(60, 1));

const at = (t, i, term) => ({ ts: Timestamp(t, i), t: NumberLong(term) });
assert.eq(0, rs.compareOpTimes(at(1, 1, 1), at(1, 1, 1)));
assert.eq(1, rs.compareOpTimes(at(1, 1, 2), at(9, 9, 1)));
assert.eq(-1, rs.compareOpTimes(at(1, 1, 1), at(1, 2, 1)));
assert(rs.isValidOpTime(at(1, 1, 1)));
assert(!rs.isValidOpTime(at(1, 1, -1)) && !rs.isValidOpTime(at(0, 0, 1)) && !rs.isValidOpTime({}));

// What a ReplSetTest says of the same set.
assert.eq(false, Boolean(rst.isConfigServer));
assert.eq(rst.getPrimary(), rst.getMaster());
const told = [];
rst.each((node) => told.push(node.port));
assert.eq(rst.ports, told);
rst.awaitNodesAgreeOnConfigVersion();
rst.awaitHighestPriorityNodeIsPrimary();
rst.awaitRSClientHosts(rst.getPrimary(), rst.getPrimary().host, { ok: true, ismaster: true });
assert(rs.isValidOpTime(rst.getReadConcernMajorityOpTimeOrThrow(rst.getPrimary())));
rst.stopSet();
