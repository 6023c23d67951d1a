/**
 * An administrator bounds the time of reads that name none, on a set or a cluster (defaultMaxTimeMS).
 * Fails when a read goes on for longer, when a read's own time, a write or an exempt user is cut short, or when a router does not
 * learn of the limit.
 *
 * @tags: [requires_own_servers]
 */
const sleeping = {$function: {body: "function() { sleep(250); return true; }", args: [], lang: "js"}};
const slow = {$expr: sleeping};

/** What must hold of a server whose limit is set through `admin`. */
function check(admin, coll) {
    const set = ms => assert.commandWorked(admin.runCommand({setClusterParameter: {defaultMaxTimeMS: {readOperations: ms}}}));
    const reads = {
        find: {find: coll.getName(), filter: slow},
        count: {count: coll.getName(), query: slow},
        distinct: {distinct: coll.getName(), key: "a", query: slow},
        aggregate: {aggregate: coll.getName(), pipeline: [{$match: slow}], cursor: {}},
    };
    set(50);
    const shown = assert.commandWorked(admin.runCommand({getClusterParameter: "defaultMaxTimeMS"})).clusterParameters[0];
    assert.eq(50, Number(shown.readOperations));
    for (const [name, command] of Object.entries(reads)) {
        assert.commandFailedWithCode(coll.getDB().runCommand(command), ErrorCodes.MaxTimeMSExpired, name);
        const own = {maxTimeMS: name == "find" ? 0 : 60000};
        assert.commandWorked(coll.getDB().runCommand(Object.assign({}, command, own)), name);
    }
    assert.commandWorked(coll.update(slow, {$set: {a: 1}}));
    assert.commandWorked(coll.getDB().runCommand({
        aggregate: coll.getName(), cursor: {},
        pipeline: [{$set: {x: sleeping}}, {$out: "out"}],
    }));
    assert.commandFailedWithCode(
        admin.runCommand({setClusterParameter: {defaultMaxTimeMS: {readOperations: -1}}}), ErrorCodes.BadValue);
    set(0);
    assert.commandWorked(coll.getDB().runCommand(reads.find));
}

const alone = new ReplSetTest({nodes: 1});
alone.startSet();
alone.initiate();
assert.commandWorked(alone.getPrimary().getDB("test").c.insert({a: 1}));
check(alone.getPrimary().getDB("admin"), alone.getPrimary().getDB("test").c);
alone.stopSet();

const st = new ShardingTest({shards: 2, mongos: 1});
const coll = st.s.getDB("test").c;
st.shardColl(coll, {a: 1}, {a: 0}, {a: 1});
assert.commandWorked(coll.insert({a: 1}));
check(st.s.getDB("admin"), coll);
st.stop();
