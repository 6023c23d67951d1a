// Threads and latches: the natives under the constructors, and the constructors.
Natives.watch("_threadInject", "_scopedThreadInject", "CountDownLatch._new", "CountDownLatch._await", "CountDownLatch._countDown", "CountDownLatch._getCount",
              "Thread", "ScopedThread");
const latch = CountDownLatch._new(2);
assert.eq(2, Number(CountDownLatch._getCount(latch)));
const Own = function(...args) {
    this.init(...args);
};
_threadInject(Own.prototype);
const own = new Own((latch, n) => {
    CountDownLatch._countDown(latch);
    return n + 1;
}, latch, 4);
own.start();
own.join();
assert.eq([5, false], [own.returnData(), own.hasFailed()]);
CountDownLatch._countDown(latch);
CountDownLatch._await(latch);

const Scoped = function(...args) {
    this.init(...args);
};
_scopedThreadInject(Scoped.prototype);
const scoped = new Scoped(() => { throw new Error("as intended"); });
scoped.start();
assert.throws(() => scoped.join());
assert.eq(true, scoped.hasFailed());

const modern = new Thread(async () => {
    const {greeting} = await import("jstests/libs/greeting.js");
    return greeting;
});
modern.start();
assert.eq("imported from the root", modern.returnData());
const old = new ScopedThread((a) => a.b, {b: NumberLong(3)});
old.start();
assert.eq(NumberLong(3), old.returnData());
Natives.done();
