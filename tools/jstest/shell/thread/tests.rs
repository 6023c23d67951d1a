//! Threads and latches, from a script's side.

use crate::testing::{output_of, run};

#[test]
fn arguments_and_results_pass_by_value() {
    run(r#"
        const t = new Thread(function(a, b, c) {
            a.list.push(4);
            return {sum: a.list.reduce((x, y) => x + y), b: b, c: c === undefined, at: new Date(5)};
        }, {list: [1, 2, 3]}, NumberLong("9007199254740993"), undefined);
        t.start();
        t.join();
        if (t.hasFailed()) throw Error("failed");
        const r = t.returnData();
        if (r.sum !== 10 || String(r.b) !== 'NumberLong("9007199254740993")' || !r.c || r.at.getTime() !== 5) {
            throw Error(JSON.stringify(r));
        }
        const plain = new ScopedThread(() => 7);
        plain.start();
        if (plain.returnData() !== 7) throw Error("a number comes back");
        const nothing = new Thread(function() {});
        nothing.start();
        if (nothing.returnData() !== undefined) throw Error("nothing comes back");
    "#)
    .unwrap();
}

#[test]
fn functions_of_every_form_travel_by_their_source() {
    run(r#"
        const holder = {method(n) { return n + 1; }, async later(n) { return n + 2; }};
        class Made { static calculate(f, n) { return f(n) * 10; } }
        function result(...args) { const t = new Thread(...args); t.start(); return t.returnData(); }
        if (result(holder.method, 1) !== 2) throw Error("a method");
        if (result(holder.later, 1) !== 3) throw Error("an async method");
        if (result(async n => n + 3, 1) !== 4) throw Error("an async arrow function");
        if (result(Made.calculate, (n) => n + 1, 1) !== 20) throw Error("a function as an argument");
        if (result(function(o) { return o.in.f(2) + o.l[0](3); }, {in: {f: n => n * 2}, l: [n => n * 3]}) !== 13) {
            throw Error("functions inside of arguments");
        }
    "#)
    .unwrap();
}

#[test]
fn async_functions_import_modules_and_run_to_their_end() {
    run(r#"
        const t = new Thread(async function(n) {
            const {isLinux} = await import("jstests/libs/os_helpers.js");
            await null;
            return isLinux() ? n : -n;
        }, 5);
        t.start();
        if (t.returnData() !== 5) throw Error("wrong: " + t.returnData());
        const stuck = new Thread(async () => { await new Promise(() => {}); });
        stuck.start();
        try { stuck.join(); } catch (e) {}
        if (!stuck.hasFailed()) throw Error("a promise that nothing settles is a failure");
    "#)
    .unwrap();
}

#[test]
fn an_exception_fails_the_thread_and_is_thrown_by_join_and_return_data() {
    let (outcome, output) = output_of(
        r#"
        function failed(fn) {
            const t = new Thread(fn);
            t.start();
            let joined = true;
            try { t.join(); } catch (e) { joined = false; }
            if (joined || !t.hasFailed()) throw Error("did not fail");
            try { t.returnData(); } catch (e) { return e; }
            throw Error("returned data");
        }
        const thrown = failed(function() { const e = new Error("broken"); e.code = 42; throw e; });
        if (thrown.message !== "broken" || thrown.code !== 42) throw thrown;
        if (failed(async () => { throw Error("later"); }).message !== "later") throw Error("async");
        if (failed(() => { Promise.reject(Error("alone")); }).message !== "alone") throw Error("unhandled");
        if (failed(() => { null.x; }).code !== 139) throw Error("code");
    "#,
    );
    outcome.unwrap();
    assert!(output.contains("js thread raised js exception: Error: broken"), "{output}");
}

#[test]
fn misuse_is_an_exception() {
    run(r#"
        function message(f) { try { f(); } catch (e) { return e.message; } return "none"; }
        const t = new Thread(() => 1);
        const seen = [message(() => t.join()), message(() => t.hasFailed()), message(() => t.returnData())];
        t.start();
        seen.push(message(() => t.start()));
        t.join();
        seen.push(message(() => t.join()), message(() => new Thread(5)), message(() => new Thread()));
        const expected = ["Thread not running", "Thread not started", "Thread not started", "Thread already started",
            "Thread not running", "first Thread argument must be a function", "Thread requires at least one argument"];
        if (seen.join() !== expected.join()) throw Error(seen.join());
    "#)
    .unwrap();
}

#[test]
fn threads_meet_at_latches_and_see_test_data() {
    run(r#"
        TestData = {testName: "latches", nested: {f: () => 3}};
        const ready = new CountDownLatch(2), go = CountDownLatch(1);
        const work = function(ready, go) {
            ready.countDown();
            go.await();
            return [TestData.testName, TestData.nested.f(), go.getCount()].join();
        };
        const threads = [new Thread(work, ready, go), new Thread(work, ready, go)];
        threads.forEach(t => t.start());
        ready.await();
        if (ready.getCount() !== 0 || go.getCount() !== 1) throw Error("counts");
        go.countDown();
        go.countDown();
        threads.forEach(t => { if (t.returnData() !== "latches,3,0") throw Error(t.returnData()); });
        let refused;
        try { new CountDownLatch(-1); } catch (e) { refused = e.code; }
        if (refused !== 9) throw Error("a negative count");
    "#)
    .unwrap();
}

#[test]
fn a_foreign_library_puts_its_own_classes_over_the_natives() {
    run(r#"
        Thread = function() { this.init.apply(this, arguments); };
        _threadInject(Thread.prototype);
        CountDownLatch = Object.assign(function(count) {
            this._descriptor = CountDownLatch._new.apply(null, arguments);
            this.countDown = function() { CountDownLatch._countDown(this._descriptor); };
        }, CountDownLatch);
        const latch = new CountDownLatch(1);
        const t = new Thread(function(latch) { latch.countDown(); return 1; }, latch);
        t.start();
        CountDownLatch._await(latch._descriptor);
        if (t.returnData() !== 1 || CountDownLatch._getCount(latch._descriptor) !== 0) throw Error("wrong");
    "#)
    .unwrap();
}
