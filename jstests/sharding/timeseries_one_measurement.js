/**
 * A delete or a findAndModify of one measurement removes one, whatever its filter says of the shard, and tells a repetition through
 * another router what it did, also after its bucket has moved.
 * It fails if two shards remove a measurement each, none does while one matches, or a repetition removes another.
 *
 * @tags: [requires_own_servers]
 */
import {chunksOf, moveRange, ownCluster} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, testDB} = ownCluster("one_measurement", {mongos: 2});
const other = st.s1.getDB(testDB.getName());
const series = {timeField: "t", metaField: "m"};
const start = 1700000000000;
const upTo = (n) => Array.from({length: n}, (_, i) => i);
const measurement = (v) => ({_id: v, t: new Date(start + v * 1000), m: v % 10, v});

function seriesInHalves(name, key, middle) {
    assert.commandWorked(admin.runCommand({shardCollection: `${testDB}.${name}`, key, timeseries: series}));
    const buckets = testDB.getCollection(`system.buckets.${name}`);
    assert.commandWorked(admin.runCommand({split: buckets.getFullName(), middle}));
    const [, upper] = chunksOf(buckets);
    moveRange(buckets, {min: upper.min, max: upper.max}, second);
    return buckets;
}

for (const [name, key, middle] of [
         ["by_meta", {m: 1}, {meta: 5}],
         ["by_time", {m: 1, t: 1}, {meta: 5, "control.min.t": new Date(start)}],
         ["by_hash", {m: "hashed"}, {meta: NumberLong(17)}],
]) {
    const coll = testDB.getCollection(name);
    const buckets = seriesInHalves(name, key, middle);
    const move = (round) => chunksOf(buckets).forEach((chunk, i) => {
        const to = (round + i) % 2 === 0 ? second : first;
        if (chunk.shard !== to) {
            moveRange(buckets, {min: chunk.min, max: chunk.max}, to);
        }
    });
    assert.commandWorked(coll.insert(upTo(200).map(measurement)));
    let left = new Set(upTo(200));
    const check = (said) => assert.eq([...left], coll.find().toArray().map((d) => d.v).sort((a, b) => a - b), said);
    const gone = (...vs) => vs.forEach((v) => assert(left.delete(v), `${v}`));
    const remove = (q, through) => assert.commandWorked((through || testDB).runCommand({delete: name, deletes: [{q, limit: 1}]})).n;
    const modify = (fields, through) => (through || testDB).runCommand(Object.assign({findAndModify: name}, fields));

    // On either shard, on both, on none; a router that has not heard of it yet.
    assert.eq([1, 1, 0], [remove({v: 3}, other), remove({v: 8}), remove({v: 1000})]);
    gone(3, 8);
    assert.eq([1, 1], [remove({m: 7, v: 7}), remove({t: new Date(start + 11000)})]);
    gone(7, 11);
    check("after deletes");
    assert.eq(1, remove({v: {$in: [14, 16]}}));
    assert.eq(1, coll.find({v: {$in: [14, 16]}}).itcount());
    coll.find({v: {$in: [14, 16]}}).forEach((d) => gone(d.v === 14 ? 16 : 14));
    let reply = assert.commandWorked(modify({query: {v: 13}, remove: true}));
    assert.docEq(measurement(13), reply.value);
    assert.docEq({n: 1}, reply.lastErrorObject);
    reply = assert.commandWorked(modify({query: {v: 19}, remove: true, fields: {_id: 0, m: 1}, sort: {}}, other));
    assert.docEq({m: 9}, reply.value);
    reply = assert.commandWorked(modify({query: {v: 19}, remove: true}));
    assert.eq([null, 0], [reply.value, reply.lastErrorObject.n]);
    reply = assert.commandWorked(admin.runCommand({
        bulkWrite: 1, nsInfo: [{ns: coll.getFullName()}],
        ops: [{delete: 0, filter: {v: 21}, multi: false}, {delete: 0, filter: {v: 26}, multi: false}],
    }));
    assert.eq(2, reply.nDeleted);
    gone(13, 19, 21, 26);
    check("after findAndModify and bulkWrite");

    // What no time series takes, whether one shard is asked or none is named.
    for (const query of [{v: 30}, {m: 3, t: new Date(start)}]) {
        assert.commandFailedWithCode(modify({query, remove: true, sort: {v: 1}}), 72);
        assert.commandFailedWithCode(modify({query, update: {$set: {v: 0}}}), 72);
        assert.commandFailedWithCode(modify({query, update: {$set: {v: 0}}, upsert: true}), 72);
    }
    for (const q of [{v: 30}, {v: -1}]) {
        const within = {lsid: {id: UUID()}, txnNumber: NumberLong(1), startTransaction: true, autocommit: false};
        const command = Object.assign({delete: name, deletes: [{q, limit: 1}]}, within);
        assert.commandFailedWithCode(testDB.runCommand(command), 263);
    }
    check("after what was refused");

    // Repetitions, through both routers, and after the buckets have moved.
    const lsid = {id: UUID()};
    const commands = [
        {delete: name, deletes: [{q: {v: {$gte: 100, $lt: 120}}, limit: 1}]},
        {delete: name, deletes: [{q: {v: {$gte: 120, $lt: 140}, m: 2}, limit: 1}, {q: {v: {$gte: 120, $lt: 140}}, limit: 1}]},
        {findAndModify: name, query: {v: {$gte: 140, $lt: 160}}, remove: true},
        {findAndModify: name, query: {v: {$gte: 160, $lt: 180}, m: 8}, remove: true},
    ];
    commands.forEach((command, i) => {
        const numbered = Object.assign({}, command, {lsid: lsid, txnNumber: NumberLong(i + 1)});
        const once = assert.commandWorked(testDB.runCommand(numbered));
        const state = coll.find().toArray().map((d) => d.v).sort((a, b) => a - b);
        assert.eq(left.size - (command.deletes || [1]).length, state.length, tojson(command));
        for (let round = 0; round < 3; round++) {
            const again = assert.commandWorked((round % 2 === 0 ? other : testDB).runCommand(numbered));
            assert.eq([once.n, once.value], [again.n, again.value], tojson(again));
            assert.eq(state, coll.find().toArray().map((d) => d.v).sort((a, b) => a - b), tojson(command));
            move(round);
        }
        left = new Set(state);
    });

    // Two deliveries at once remove one.
    for (let round = 0; round < 10; round++) {
        const numbered = {findAndModify: name, query: {v: {$lt: 100}}, remove: true, lsid: lsid, txnNumber: NumberLong(10 + round)};
        const threads = [st.s0, st.s1].map((router) => {
            const thread = new Thread(function(host, db, command) {
                return new Mongo(host).getDB(db).runCommand(command);
            }, router.host, testDB.getName(), numbered);
            thread.start();
            return thread;
        });
        const replies = threads.map((thread) => assert.commandWorked(thread.returnData()));
        assert.eq(replies[0].value, replies[1].value);
        gone(replies[0].value.v);
        check("after two deliveries");
    }

    // Beside moves, each removal that was acknowledged has removed its own.
    assert.commandWorked(coll.insert(upTo(400).map((i) => measurement(1000 + i))));
    const removers = [0, 1].map((i) => {
        const thread = new Thread(function(host, db, name, i) {
            const connection = new Mongo(host);
            const values = [];
            for (let n = 0; n < 100; n++) {
                const command = n % 2 === 0 ? {findAndModify: name, query: {v: {$gte: 1000}}, remove: true}
                                            : {delete: name, deletes: [{q: {v: 1000 + 399 - i * 100 - n}, limit: 1}]};
                const reply = assert.commandWorked(connection.getDB(db).runCommand(command));
                assert(!reply.writeErrors, tojson(reply));
                values.push(reply.value ? reply.value.v : reply.n);
            }
            return values;
        }, [st.s0, st.s1][i].host, testDB.getName(), name, i);
        thread.start();
        return thread;
    });
    for (let round = 0; round < 2; round++) {
        move(round);
    }
    const removed = removers.flatMap((thread) => thread.returnData());
    const values = removed.filter((v) => v >= 1000);
    assert.eq(values.length, new Set(values).size, "one was removed twice");
    const deleted = removed.filter((v) => v < 1000).reduce((a, b) => a + b, 0);
    assert.eq(400 - values.length - deleted, coll.find({v: {$gte: 1000}}).itcount());
}
assert.eq([], testDB.checkMetadataConsistency().toArray());
st.stop();
