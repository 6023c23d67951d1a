/**
 * A snapshot is taken or put back everywhere or nowhere, whichever node is killed between two of its steps.
 * It fails if a half-made snapshot takes the place of the one before, if a cluster is half put back and serves, if clients wait for ever, or if a write
 * that was acknowledged afterwards is gone.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const db = st.s.getDB("d");
assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: first}));
assert.commandWorked(st.s.adminCommand({shardCollection: "d.c", key: {x: 1}}));
assert.commandWorked(st.s.adminCommand({split: "d.c", middle: {x: 0}}));
assert.commandWorked(st.s.adminCommand({moveRange: "d.c", min: {x: 0}, max: {x: MaxKey}, toShard: second, waitForDelete: true}));
const durable = {writeConcern: {w: "majority"}};
const set = (value) => assert.commandWorked(db.c.update({}, {$set: {value: value}}, {multi: true, writeConcern: {w: "majority"}}));
assert.commandWorked(db.c.insert([{_id: 1, x: -1}, {_id: 2, x: 1}, {_id: 3, x: 2}], durable));
set("base");
assert.commandWorked(st.s.adminCommand({tesseraSnapshot: "s"}));

const values = (router) => router.getCollection("d.c").distinct("value");
const underWay = () => st.configRS.getPrimary().getDB("config").getCollection("sharding_configsvr_coordinators").find().itcount();

/**
 * Runs a command and kills the sets' members where the config server waits before a phase; for a step (`after ...`), where a shard has
 * done it and has not replied. Returns the command's reply.
 */
function interrupted(command, phase, victims) {
    const [after, step] = [phase.startsWith("after "), phase.replace("after ", "")];
    const where = (after ? victims[0] : st.configRS).getPrimary();
    const point = configureFailPoint(where, `hangStandstill${after ? "After" : "Before"}_${step}`);
    const sent = new Thread(function(host, command) {
        try {
            return new Mongo(host).adminCommand(command);
        } catch (e) {
            return {ok: 0, errmsg: e.toString()};
        }
    }, st.s.host, command);
    sent.start();
    point.wait();
    for (const rs of victims) {
        rs.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
    }
    if (!after && !victims.includes(st.configRS)) {
        point.off();
    }
    for (const rs of victims) {
        rs.start(0, {}, true);
        rs.awaitNodesAgreeOnPrimary();
    }
    assert.soonNoExcept(() => underWay() === 0, "the standstill does not end", 60 * 1000);
    sent.join();
    return sent.returnData();
}

/** Neither snapshot nor restore leaves anything behind that stops clients, migrations or changes of the catalog. */
function checkAlive() {
    for (const router of [st.s1, st.s]) {
        assert.soonNoExcept(() => router.getCollection("d.c").update({_id: 1, x: -1}, {$inc: {n: 1}}).nModified === 1);
    }
    assert.commandWorked(db.c.insert([{_id: "low", x: -9}, {_id: "high", x: 9}], durable));
    assert.eq(5, st.s1.getCollection("d.c").find().itcount());
    const owner = st.s.getDB("config").chunks.findOne({"min.x": 0}).shard;
    const elsewhere = owner === first ? second : first;
    assert.soonNoExcept(() => st.s.adminCommand({moveRange: "d.c", min: {x: 0}, max: {x: MaxKey}, toShard: elsewhere}).ok === 1);
    assert.eq(5, st.s1.getCollection("d.c").find().itcount());
    assert.commandWorked(db.c.remove({_id: {$in: ["low", "high"]}}));
    assert.commandWorked(st.s.adminCommand({shardCollection: "d.other", key: {x: "hashed"}}));
    assert(db.other.drop());
    assert.eq([], assert.commandWorked(db.runCommand({checkMetadataConsistency: 1})).cursor.firstBatch);
}

// Before anything is put back, the restore is given up; afterwards it goes on to its end.
let round = 0;
for (const [phase, victims, restored] of [
    ["begin", [st.configRS], false],
    ["begin", [st.rs1], false],
    ["putBack", [st.configRS], true],
    ["putBack", [st.rs0], true],
    ["after begin", [st.rs0], false],
    ["after putBack", [st.rs1], true],
    ["after end", [st.rs0], true],
    ["catalog", [st.rs1], true],
    ["catalog", [st.configRS, st.rs0], true],
    ["end", [st.configRS, st.rs1], true],
]) {
    const now = "changed " + round++;
    set(now);
    const reply = interrupted({tesseraRestore: "s"}, phase, victims);
    const expected = restored ? ["base"] : [now];
    const message = () => `${phase}, ${victims.map((rs) => rs.name)}: ${tojson(reply)}`;
    assert.soonNoExcept(() => friendlyEqual(expected, values(st.s1)), message);
    assert.soonNoExcept(() => friendlyEqual(expected, values(st.s)), message);
    checkAlive();
}

// A snapshot that is not finished leaves the one of the same name as it is.
for (const [phase, victims, taken] of [
    ["take", [st.rs1], false],
    ["take", [st.configRS], false],
    ["after take", [st.rs0], false],
    ["commit", [st.configRS], true],
    ["end", [st.rs0], true],
]) {
    const now = "kept " + round++;
    const before = assert.commandWorked(st.s.adminCommand({tesseraRestore: "s"})) && values(st.s);
    set(now);
    interrupted({tesseraSnapshot: "s"}, phase, victims);
    assert.soonNoExcept(() => friendlyEqual([now], values(st.s1)));
    checkAlive();
    set("since");
    assert.commandWorked(st.s.adminCommand({tesseraRestore: "s"}));
    assert.eq(taken ? [now] : before, values(st.s1), `${phase}, ${victims.map((rs) => rs.name)}`);
}

// Nothing of what was given up or replaced stays: every part that was made has been dropped.
assert.commandWorked(st.s.adminCommand({tesseraSnapshot: "s", drop: true}));
for (const rs of [st.rs0, st.rs1, st.configRS]) {
    const [made, gone] = [new Set(), new Set()];
    for (const entry of rs.getPrimary().getDB("local").oplog.rs.find({"o.applyOps.ns": /^\$snapshot:(shard|catalog)-/})) {
        for (const inner of entry.o.applyOps) {
            const part = /^\$snapshot:(.*?):/.exec(inner.ns);
            if (part && inner.o.create === "taken") {
                made.add(part[1]);
            }
            if (part && inner.o.drop === "taken") {
                gone.add(part[1]);
            }
        }
    }
    assert.gte(made.size, 3);
    assert.eq([...made].sort(), [...gone].sort());
}
st.stop();
