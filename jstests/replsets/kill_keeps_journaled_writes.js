/**
 * What was acknowledged with j:true or w:"majority" is there after the process was killed, whatever it was doing.
 * It fails if an acknowledgement is sent before the log is on disk, or recovery stops at an unfinished entry.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const kill = () => {
    rst.stop(0, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
    rst.start(0, {}, true);
    return rst.getPrimary();
};
let node = rst.getPrimary();

for (const [name, concern] of [["journaled", {w: 1, j: true}], ["majority", {w: "majority"}]]) {
    for (let i = 0; i < 100; i++) {
        assert.commandWorked(node.getDB("test")[name].insert({_id: i}, {writeConcern: concern}));
    }
    node = kill();
    assert.eq(100, node.getDB("test")[name].find().itcount(), name);
}

// Killed in the middle of writes: all that was acknowledged, at most one more for each writer.
const writers = [0, 1].map((seed) => new Thread(function(host, seed) {
    const c = new Mongo(host).getDB("test").busy;
    let acknowledged = 0;
    try {
        for (let n = 0; n < 1000000; n++) {
            const done = c.insert({_id: `${seed}-${n}`, pad: "p".repeat(500)}, {writeConcern: {w: 1, j: true}});
            if (done.nInserted !== 1) {
                break;
            }
            acknowledged = n + 1;
        }
    } catch (e) {
        // The server is gone.
    }
    return acknowledged;
}, node.host, seed));
writers.forEach((w) => w.start());
assert.soon(() => [0, 1].every((seed) => node.getDB("test").busy.find({_id: {$regex: `^${seed}-`}}).itcount() > 20));
node = kill();
writers.map((w) => w.returnData()).forEach((acknowledged, seed) => {
    const found = node.getDB("test").busy.find({_id: {$regex: `^${seed}-`}}).itcount();
    assert(found === acknowledged || found === acknowledged + 1, `${found} found, ${acknowledged} acknowledged`);
});

// The catalog, indexes and the oplog as well.
assert.commandWorked(node.getDB("test").runCommand({
    createIndexes: "busy", indexes: [{key: {pad: 1}, name: "pad_1"}], writeConcern: {w: "majority"},
}));
assert.commandWorked(node.getDB("test").runCommand({create: "capped", capped: true, size: 4096, writeConcern: {w: "majority"}}));
assert.commandWorked(node.getDB("test").runCommand({drop: "journaled", writeConcern: {w: "majority"}}));
const newest = node.getDB("local").getCollection("oplog.rs").find().sort({$natural: -1}).limit(1).next().ts;
node = kill();
assert.eq(2, node.getDB("test").busy.getIndexes().length);
assert.eq(node.getDB("test").busy.find().itcount(), node.getDB("test").busy.find().hint("pad_1").itcount());
assert.eq(true, node.getDB("test").getCollectionInfos({name: "capped"})[0].options.capped);
assert.eq(0, node.getDB("test").journaled.find().itcount());
assert(node.getDB("local").getCollection("oplog.rs").findOne({ts: newest}), "the log lost its end");
assert.eq(true, assert.commandWorked(node.getDB("test").runCommand({validate: "busy", full: true})).valid);
rst.stopSet();
