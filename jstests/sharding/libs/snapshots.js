/**
 * What snapshots of a cluster are put through. The cluster has two shards and two routers; its config server may be the first of the shards.
 */

/** Takes snapshots while clients write through both routers and a chunk moves, and looks at each of them. */
export function snapshotsUnderWriters(st) {
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
}

/** Kills nodes between any two steps of taking a snapshot and of putting one back. */
export function snapshotsUnderKills(st) {
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
        // Where the config server is a shard, the two are one set.
        victims = [...new Set(victims)];
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
    for (const rs of new Set([st.rs0, st.rs1, st.configRS])) {
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
}
