/**
 * A snapshot of a cluster is of one moment, taken while clients write through two routers, transactions commit on both shards and a chunk moves.
 * It fails if a write is in it without one that was acknowledged before, if half a transaction is, or if a document is missing or there twice.
 *
 * @tags: [requires_own_servers]
 */
const st = new ShardingTest({shards: 2, mongos: 2});
const [first, second] = [st.shard0.shardName, st.shard1.shardName];
const db = st.s.getDB("d");
assert.commandWorked(st.s.adminCommand({enableSharding: "d", primaryShard: first}));
for (const name of ["steps", "accounts", "moving"]) {
    assert.commandWorked(st.s.adminCommand({shardCollection: `d.${name}`, key: {x: 1}}));
    assert.commandWorked(st.s.adminCommand({split: `d.${name}`, middle: {x: 0}}));
    assert.commandWorked(st.s.adminCommand({moveRange: `d.${name}`, min: {x: 0}, max: {x: MaxKey}, toShard: second, waitForDelete: true}));
}
const [writers, documents] = [3, 200];
for (let w = 0; w < writers; w++) {
    assert.commandWorked(db.steps.insert([{_id: `a${w}`, x: 1 + w, n: 0}, {_id: `b${w}`, x: -1 - w, n: 0}]));
}
assert.commandWorked(db.accounts.insert([{_id: "low", x: -1, sum: 1000}, {_id: "high", x: 1, sum: 1000}]));
assert.commandWorked(db.moving.insert([...Array(documents).keys()].map((i) => ({_id: i, x: i - documents / 2}))));
assert.commandWorked(db.done.insert({_id: "done", yes: false}));

/** Goes on until it is told to end; first one shard, then the other. */
function steps(host, w) {
    const db = new Mongo(host).getDB("d");
    let n = 0;
    while (!db.done.findOne({yes: true})) {
        n++;
        assert.commandWorked(db.steps.update({_id: `a${w}`, x: 1 + w}, {$set: {n: n}}));
        assert.commandWorked(db.steps.update({_id: `b${w}`, x: -1 - w}, {$set: {n: n}}));
    }
    return n;
}
/** Moves amounts between the accounts, in transactions over both shards. */
function transfers(host) {
    const conn = new Mongo(host);
    const session = conn.startSession();
    const accounts = session.getDatabase("d").accounts;
    let committed = 0;
    for (let i = 0; !conn.getDB("d").done.findOne({yes: true}); i++) {
        try {
            session.startTransaction();
            assert.commandWorked(accounts.update({_id: "low", x: -1}, {$inc: {sum: i % 7}}));
            assert.commandWorked(accounts.update({_id: "high", x: 1}, {$inc: {sum: -(i % 7)}}));
            assert.commandWorked(session.commitTransaction_forTesting());
            committed++;
        } catch (e) {
            // What was prepared in the moment of a snapshot is aborted; a commit that was refused needs no abort.
            try { session.abortTransaction_forTesting(); } catch (ended) {}
        }
    }
    return committed;
}
function moves(host, shards) {
    const conn = new Mongo(host);
    let moved = 0;
    for (let i = 0; !conn.getDB("d").done.findOne({yes: true}); i++) {
        moved += conn.adminCommand({moveRange: "d.moving", min: {x: 0}, max: {x: MaxKey}, toShard: shards[i % 2]}).ok;
    }
    return moved;
}
const threads = [...Array(writers).keys()].map((w) => new Thread(steps, w % 2 ? st.s1.host : st.s.host, w));
threads.push(new Thread(transfers, st.s.host), new Thread(transfers, st.s1.host), new Thread(moves, st.s1.host, [first, second]));
threads.forEach((thread) => thread.start());
const names = [];
for (let i = 0; i < 8; i++) {
    sleep(100);
    // One shard's part is taken long after the other's.
    const point = i % 2 ? configureFailPoint([st.rs0, st.rs1][(i >> 1) % 2].getPrimary(), "hangStandstillAt_take") : null;
    const taking = new Thread((host, name) => new Mongo(host).adminCommand({tesseraSnapshot: name}), st.s.host, `s${i}`);
    taking.start();
    if (point) {
        point.wait();
        sleep(100);
        point.off();
    }
    taking.join();
    assert.commandWorked(taking.returnData());
    names.push(`s${i}`);
}
assert.commandWorked(db.done.update({_id: "done"}, {$set: {yes: true}}));
const progress = threads.map((thread) => { thread.join(); return thread.returnData(); });
progress.forEach((n) => assert.gt(n, 0, tojson(progress)));

let last = 0;
for (const name of names) {
    assert.commandWorked(st.s.adminCommand({tesseraRestore: name}));
    for (const router of [st.s1, st.s]) {
        const then = router.getDB("d");
        for (let w = 0; w < writers; w++) {
            const [a, b] = ["a", "b"].map((side) => then.steps.findOne({_id: side + w}).n);
            assert(a === b || a === b + 1, `${name}, writer ${w}: ${a} then ${b}`);
        }
        const sums = then.accounts.find().toArray().map((account) => account.sum);
        assert.eq(2000, sums[0] + sums[1], name);
        assert.eq([...Array(documents).keys()], then.moving.find().sort({_id: 1}).toArray().map((d) => d._id), name);
    }
    const total = Array.sum(db.steps.find().toArray().map((d) => d.n));
    assert.gte(total, last);
    last = total;
}
assert.eq([], assert.commandWorked(db.runCommand({checkMetadataConsistency: 1})).cursor.firstBatch);
st.stop();
