/**
 * A set's configuration is replaced as a whole, with a higher version, and holds over a restart.
 * It fails if an older version is taken, forced ones keep the version, or what was set is not what is reported.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
let primary = rst.getPrimary();
const current = () => assert.commandWorked(primary.adminCommand({replSetGetConfig: 1})).config;
const change = (act, force) => {
    const config = current();
    config.version++;
    act(config);
    return primary.adminCommand(Object.assign({replSetReconfig: config}, force ? {force: true} : {}));
};
const first = current();

assert.commandWorked(change((c) => c.members[0].tags = {zone: "x"}));
assert.eq(first.version + 1, current().version);
assert.docEq({zone: "x"}, current().members[0].tags);
assert.docEq({zone: "x"}, primary.adminCommand({hello: 1}).tags);
assert.eq(first.version + 1, primary.adminCommand({hello: 1}).setVersion);
assert.eq(first.version + 1, primary.adminCommand({replSetGetStatus: 1}).members[0].configVersion);

assert.commandWorked(change((c) => c.members[0].priority = 3));
assert.commandWorked(change((c) => c.settings.electionTimeoutMillis = 7000));
assert.eq(3, current().members[0].priority);
assert.eq(7000, current().settings.electionTimeoutMillis);
assert(rst.getPrimary());

// Refused, without any change.
const before = current();
assert.commandFailedWithCode(change((c) => c.version = before.version), 103);
assert.commandFailedWithCode(change((c) => c.version = before.version - 1), 103);
assert.commandFailedWithCode(change((c) => c._id = "renamed"), [93, 103]);
assert.commandFailedWithCode(change((c) => c.members = []), 93);
assert.commandFailedWithCode(change((c) => c.members[0].priority = 0), [93, 103]);
assert.commandFailedWithCode(change((c) => c.members[0]._id = 5), 103);
assert.commandFailedWithCode(change((c) => c.settings.replicaSetId = ObjectId()), 103);
assert.commandFailedWithCode(change((c) => c.protocolVersion = NumberLong(0)), [2, 93, 103]);
assert.commandFailedWithCode(change((c) => c.unknownField = 1), [93, 40415]);
assert.eq(before, current());

// Forced: the version leaps.
assert.commandWorked(change((c) => c.members[0].tags = {zone: "forced"}, true));
assert.gt(current().version, before.version + 1000);
assert.docEq({zone: "forced"}, current().members[0].tags);

// It is written down.
const stored = primary.getDB("local").getCollection("system.replset").find().toArray();
assert.eq(1, stored.length);
assert.eq(current().version, stored[0].version);
const kept = current();
rst.restart(0);
primary = rst.getPrimary();
const after = current();
assert.eq(kept.version, after.version);
assert.eq(kept.members, after.members);
assert.eq(kept.settings, after.settings);
rst.stopSet();
