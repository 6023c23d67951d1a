/**
 * A voter that is added counts for no majority before it has its data: until then its configuration says newlyAdded, which only
 * fixtures are shown, and the primary takes it off.
 * It fails if it votes before, if it never does, or if clients can give or see the field.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
assert.commandWorked(primary.getDB("test").c.insert([{_id: 1}, {_id: 2}]));
assert.commandWorked(primary.adminCommand({configureFailPoint: "doNotRemoveNewlyAddedOnHeartbeats", mode: "alwaysOn"}));
const get = (more) => assert.commandWorked(primary.adminCommand(Object.assign({replSetGetConfig: 1}, more))).config;
const second = rst.add({});

let config = get();
config.version++;
config.members.push({_id: 1, host: second.host, newlyAdded: true});
assert.commandFailedWithCode(primary.adminCommand({replSetReconfig: config}), 93);
delete config.members[1].newlyAdded;
config.members[1].priority = 3;
assert.commandWorked(primary.adminCommand({replSetReconfig: config, maxTimeMS: 60000}));

// It has its data and does not count.
rst.awaitSecondaryNodes(60000, [second]);
assert(!("newlyAdded" in get().members[1]), tojson(get()));
let whole = get({$_internalIncludeNewlyAdded: true});
assert.eq([true, 1, 3], [whole.members[1].newlyAdded, whole.members[1].votes, whole.members[1].priority]);
let status = assert.commandWorked(primary.adminCommand({replSetGetStatus: 1}));
assert.eq([1, 1], [status.votingMembersCount, status.majorityVoteCount], tojson(status));
assert.commandFailedWithCode(second.adminCommand({replSetStepUp: 1}), 125);
const pid = rst.getNodeId(second);
rst.stop(pid);
assert.commandWorked(primary.getDB("test").runCommand(
    {insert: "c", documents: [{_id: 3}], writeConcern: {w: "majority", wtimeout: 20000}}));
rst.start(pid, {}, true);

// From now on it does.
assert.commandWorked(primary.adminCommand({configureFailPoint: "doNotRemoveNewlyAddedOnHeartbeats", mode: "off"}));
assert.soon(() => !("newlyAdded" in get({$_internalIncludeNewlyAdded: true}).members[1]), "it waits for ever");
assert.gt(get().version, whole.version);
const admitted = () => assert.commandWorked(primary.adminCommand({serverStatus: 1})).metrics.repl.reconfig;
assert.soon(() => Number(admitted().numAutoReconfigsForRemovalOfNewlyAddedFields) === 1, () => tojson(admitted()));
assert.soon(() => rst.nodes[pid].adminCommand({hello: 1}).isWritablePrimary, "its priority does not count");
status = assert.commandWorked(rst.nodes[pid].adminCommand({replSetGetStatus: 1}));
assert.eq([2, 2], [status.votingMembersCount, status.majorityVoteCount], tojson(status));
rst.stopSet();
