// The load generator: each kind of operation, templates, errors, runs that are ended from outside.
Natives.watch("benchRun", "benchRunSync", "benchStart", "benchFinish");
const server = TestServers.start();
const host = "localhost:" + server.port;
const ns = "natives.bench";
const count = (query) => Number(server.conn.runCommand("natives", {count: "bench", query: query || {}}, 0).n);

const ops = [
    {op: "insert", ns, doc: {x: {"#RAND_INT": [5, 8]}, s: {"#RAND_STRING": [4]}, n: {"#SEQ_INT": {seq_id: 1, start: 0, step: 2}}, by: "benchRun"}},
    {op: "update", ns, query: {n: 0}, update: {$set: {seen: true}}},
    {op: "find", ns, query: {n: 0}},
    {op: "findOne", ns, query: {}},
    {op: "remove", ns, query: {x: -1}},
    {op: "command", ns: "admin", command: {ping: 1}},
    {op: "nop"},
];
const result = benchRun({host, seconds: 0.3, parallel: 2, totals: true, ops});
assert.eq(0, Number(result.errCount), tojson(result));
for (const kind of ["insert", "update", "query", "findOne", "delete", "command"]) {
    assert(result[kind] instanceof NumberLong && Number(result[kind]) > 0, kind + ": " + tojson(result));
}
assert.eq(count(), Number(result.insert));
assert.eq(count(), count({x: {$gte: 5, $lt: 8}, s: /^.{4}$/}));
assert.eq(2, count({n: 0, seen: true}) + count({n: 0, seen: {$exists: false}}), "each thread has sequences of its own");
assert(result.insertLatencyAverageMicros > 0 && result["totalOps/s"] > 0);

const perSecond = benchRunSync({host, seconds: 0.1, ops: [{op: "findOne", ns, query: {}}]});
assert(typeof perSecond.findOne === "number" && perSecond.findOne > 0);
assert.eq(0, perSecond.insert);

const failing = {host, seconds: 0.1, hideErrors: true, ops: [{op: "insert", ns: "natives.$bad", doc: {}}]};
assert(Number(benchRun(failing).errCount) > 0);
assert.throws(() => benchRun(Object.assign({throwGLE: true}, failing)));

const started = Date.now();
const id = benchStart({host, seconds: 3600, ops: [{op: "findOne", ns, query: {}}]});
sleep(1000);
assert(benchFinish(id).findOne > 0);
assert(Date.now() - started < 60000, "ended from outside");
assert.throws(() => benchFinish(id));
TestServers.stop(server);
Natives.done();
