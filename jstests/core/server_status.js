/**
 * Monitoring reads serverStatus every few seconds.
 * Fails when a section is missing or switched wrongly, or a counter does not count what was done.
 */
const coll = db.server_status;
coll.drop();
assert.commandWorked(coll.insert({_id: 0}));

function status(options) {
    return assert.commandWorked(db.adminCommand(Object.assign({serverStatus: 1}, options)));
}
const before = status();
for (const field of ["host", "version", "process", "pid", "uptime", "uptimeMillis", "localTime", "asserts", "connections", "network", "opcounters", "mem", "metrics"]) {
    assert(before.hasOwnProperty(field), () => field + " is missing in " + tojson(Object.keys(before)));
}
assert.eq(db.version(), before.version);
assert.contains(before.process, ["mongod", "mongos"]);
assert.eq(before.process == "mongod", before.hasOwnProperty("opcountersRepl"));
assert.lte(1, before.connections.current);

for (let i = 1; i <= 5; i++) {
    assert.commandWorked(coll.insert({_id: i}));
    assert.commandWorked(coll.update({_id: i}, {$set: {a: 1}}));
    assert.neq(null, coll.findOne({_id: i}));
}
assert.commandWorked(coll.remove({_id: 5}));
assert.eq(5, coll.find().batchSize(2).itcount());

const after = status();
function rise(counter) {
    return Number(after.opcounters[counter]) - Number(before.opcounters[counter]);
}
assert.lte(5, rise("insert"));
assert.lte(5, rise("update"));
assert.lte(6, rise("query"));
assert.lte(1, rise("delete"));
assert.lte(1, rise("getmore"));
assert.lte(1, rise("command"));
assert.eq(10, Number(after.metrics.document.returned) - Number(before.metrics.document.returned), "each document once");
assert.lt(Number(before.network.numRequests), Number(after.network.numRequests));
assert.lt(Number(before.network.bytesIn), Number(after.network.bytesIn));

// Sections are left out on demand.
assert(!status({opcounters: 0}).hasOwnProperty("opcounters"));
assert(!status({metrics: 0}).hasOwnProperty("metrics"));

// A failing command counts as a user assertion.
assert.commandFailed(db.runCommand({find: coll.getName(), filter: {$bad: 1}}));
assert.lt(Number(after.asserts.user), Number(status().asserts.user));

// What is mirrored is told on demand alone.
if (db.hello().msg !== "isdbgrid") {
    assert(!status().hasOwnProperty("mirroredReads"));
    const asked = assert.commandWorked(db.adminCommand({serverStatus: 1, mirroredReads: 1}));
    assert.eq(["seen", "sent"], Object.keys(asked.mirroredReads));
    assert.eq("object", typeof status().locks);
}

// How long cursors lived that are gone, by classes.
const lived = () => Object.values(status().metrics.cursor.lifespan).reduce((sum, n) => sum + Number(n), 0);
const livedBefore = lived();
assert.eq(5, coll.find().batchSize(2).itcount());
assert.lt(livedBefore, lived());
assert.eq(7, Object.keys(status().metrics.cursor.lifespan).length);

// Which versions of the API an application speaks.
assert.commandWorked(db.runCommand({ping: 1, apiVersion: "1"}));
assert.contains("1", status().metrics.apiVersions["MongoDB Shell"]);
assert.contains("default", status().metrics.apiVersions["MongoDB Shell"]);

if (db.hello().msg !== "isdbgrid") {
    const builds = Number(status().indexBuilds.total);
    assert.commandWorked(coll.createIndex({a: 1}));
    assert.commandWorked(coll.createIndex({b: 1}));
    assert.lte(builds + 1, Number(status().indexBuilds.total));
    // A query that has two plans is tried, and its plan remembered once it has won twice.
    const plans = () => status().metrics.query.planCache.classic;
    const tried = plans();
    for (let i = 0; i < 4; i++) {
        coll.find({a: 1, b: {$exists: false}}).itcount();
    }
    assert.lt(Number(tried.misses), Number(plans().misses));
    assert.lt(Number(tried.hits), Number(plans().hits));
    assert.lt(0, Number(status().metrics.query.planCache.totalQueryShapes));
}
