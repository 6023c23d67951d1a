/**
 * replSetInitiate takes a configuration or none, once; a wrong one is refused and leaves the node as it was.
 * It fails if a bad configuration is taken, defaults differ from the documented ones, or a second initiation is accepted.
 *
 * @tags: [requires_own_servers]
 */
let conn = MongoRunner.runMongod({replSet: "forms"});
const initiate = (config) => conn.adminCommand({replSetInitiate: config});
const member = (more) => Object.assign({_id: 0, host: conn.host}, more);

// Refused.
for (const [config, codes] of [
    [{_id: "other", members: [member()]}, [93]],
    [{_id: "forms", members: []}, [93]],
    [{_id: "forms"}, [93, 40414, 4]],
    [{members: [member()]}, [93, 40414, 4]],
    [{_id: "forms", version: 0, members: [member()]}, [93, 2, 51024]],
    [{_id: "forms", members: [member({votes: 5})]}, [2, 93]],
    [{_id: "forms", members: [member({priority: -1})]}, [2, 93]],
    [{_id: "forms", members: [member({priority: 1001})]}, [2, 93]],
    [{_id: "forms", members: [member({arbiterOnly: true})]}, [93]],
    [{_id: "forms", members: [member({priority: 0})]}, [93]],
    [{_id: "forms", members: [member({host: "no.such.host.invalid:27017"})]}, [93, 74]],
    [{_id: "forms", members: [member({_id: -1})]}, [2, 93, 51024]],
    [{_id: "forms", unknownField: 1, members: [member()]}, [93, 40415]],
    [{_id: "forms", members: [member({unknownField: 1})]}, [93, 40415]],
    [{_id: "forms", configsvr: true, members: [member()]}, [93]],
]) {
    assert.commandFailedWithCode(initiate(config), codes, tojson(config));
    assert.commandFailedWithCode(conn.adminCommand({replSetGetStatus: 1}), 94);
}

// Accepted, with all that may be said.
assert.commandWorked(initiate({
    _id: "forms",
    version: 1,
    members: [member({priority: 2, votes: 1, tags: {rack: "a"}})],
    settings: {electionTimeoutMillis: 5000, heartbeatIntervalMillis: 1000, getLastErrorModes: {r: {rack: 1}}},
}));
assert.soon(() => conn.adminCommand({hello: 1}).isWritablePrimary);
let config = assert.commandWorked(conn.adminCommand({replSetGetConfig: 1})).config;
assert.eq("forms", config._id);
assert.eq(1, config.version);
assert.eq(1, config.term);
assert.eq(1, config.members.length);
assert.docEq({rack: "a"}, config.members[0].tags);
assert.eq(2, config.members[0].priority);
assert.eq(1, config.members[0].votes);
assert.eq(5000, config.settings.electionTimeoutMillis);
assert.eq(1000, config.settings.heartbeatIntervalMillis);
assert(config.settings.replicaSetId instanceof ObjectId, tojson(config));
assert.eq({rack: "a"}, conn.adminCommand({hello: 1}).tags);

// Once only.
const again = initiate({_id: "forms", members: [member()]});
assert.commandFailedWithCode(again, 23);
assert.eq("AlreadyInitialized", again.codeName);
assert.eq("already initialized", again.errmsg);
assert.eq("try querying local.system.replset to see current configuration", again.info);
MongoRunner.stopMongod(conn);

// Without a configuration: a set of this node, with defaults.
conn = MongoRunner.runMongod({replSet: "forms"});
const reply = assert.commandWorked(conn.adminCommand({replSetInitiate: {}}));
assert(reply.info2.startsWith("no configuration specified"), tojson(reply));
assert(reply.me.endsWith(":" + conn.port), tojson(reply));
assert.soon(() => conn.adminCommand({hello: 1}).isWritablePrimary);
config = conn.adminCommand({replSetGetConfig: 1}).config;
assert.eq(reply.me, config.members[0].host);
assert.eq(NumberLong(1), config.protocolVersion);
assert.eq(true, config.writeConcernMajorityJournalDefault);
const defaults = {
    _id: 0, arbiterOnly: false, buildIndexes: true, hidden: false, priority: 1, tags: {},
    secondaryDelaySecs: NumberLong(0), votes: 1,
};
for (const [name, value] of Object.entries(defaults)) {
    assert.eq(value, config.members[0][name], name);
}
assert.eq(10000, config.settings.electionTimeoutMillis);
assert.eq(2000, config.settings.heartbeatIntervalMillis);
assert.eq(10, config.settings.heartbeatTimeoutSecs);
assert.eq(-1, config.settings.catchUpTimeoutMillis);
assert.eq(true, config.settings.chainingAllowed);
assert.eq({}, config.settings.getLastErrorModes);
assert.commandFailedWithCode(conn.getDB("test").runCommand({replSetInitiate: {}}), 13);
MongoRunner.stopMongod(conn);
