/**
 * Threads run functions beside the test, with copies of their arguments, and give back what they return; latches count down over all.
 * It fails if an argument arrives as another type, if a thread's error is lost, or if a latch lets somebody through early.
 *
 * @tags: [requires_own_servers]
 */
import { ParallelTester, Thread } from "jstests/libs/parallelTester.js";

const sum = new Thread((a, b) => a + b, 2, 3);
sum.start();
sum.join();
assert(!sum.hasFailed());
assert.eq(5, sum.returnData());

const given = { long: NumberLong("9007199254740993"), id: ObjectId("0123456789abcdef01234567"), list: [1, { a: null }], when: new Date(5) };
const echo = new Thread((value) => value, given);
echo.start();
echo.join();
assert.eq(0, bsonWoCompare(given, echo.returnData()), tojson(echo.returnData()));

// All are inside before one may leave.
const here = new CountDownLatch(3);
const threads = [1, 2, 3].map((i) => new Thread(function (latch, i) {
    latch.countDown();
    latch.await();
    return { i, left: latch.getCount() };
}, here, i));
threads.forEach((thread) => thread.start());
assert.eq([1, 2, 3], threads.map((thread) => thread.returnData().i));
assert.eq(0, here.getCount());

const broken = new Thread(() => { throw new Error("as intended"); });
broken.start();
assert.throws(() => broken.join());
assert(broken.hasFailed());

const asynchronous = new Thread(async () => {
    const { extractUUIDFromObject } = await import("jstests/libs/uuid_util.js");
    return extractUUIDFromObject(UUID("00000000-0000-4000-8000-000000000001"));
});
asynchronous.start();
assert.eq("00000000-0000-4000-8000-000000000001", asynchronous.returnData());

const tester = new ParallelTester();
tester.add((n) => assert.eq(4, n), [4]);
tester.run("a thread failed");

// Threads have connections of their own.
const conn = MongoRunner.runMongod();
const writers = [0, 1].map((i) => new Thread((host, i) => {
    const coll = new Mongo(host).getDB("test").c;
    for (let n = 0; n < 50; n++) assert.commandWorked(coll.insert({ _id: i * 50 + n }));
}, conn.host, i));
writers.forEach((thread) => thread.start());
writers.forEach((thread) => thread.join());
assert.eq(100, conn.getDB("test").c.find().itcount());
MongoRunner.stopMongod(conn);

// Servers started by threads have ports of their own, and the test can stop them.
const starters = [0, 1, 2].map(() => new Thread(() => {
    const rst = new ReplSetTest({ nodes: 1 });
    rst.startSet();
    rst.initiate();
    return { port: rst.nodes[0].port, pid: rst.nodes[0].pid };
}));
starters.forEach((thread) => thread.start());
const started = starters.map((thread) => thread.returnData());
assert.eq(3, new Set(started.map((one) => one.port)).size, tojson(started));
started.forEach((one) => assert.eq(0, MongoRunner.stopMongod(one)));
