// Threads of a test. `Thread` is native; ParallelTester runs functions side by side and fails when one of them does.
export const Thread = globalThis.Thread;
export const CountDownLatch = globalThis.CountDownLatch;

export class ParallelTester {
    constructor() {
        this.params = [];
    }
    add(fn, args = []) {
        this.params.push([fn, ...args]);
    }
    run(message) {
        const threads = this.params.map(([fn, ...args]) => new Thread(fn, ...args));
        threads.forEach((thread) => thread.start());
        const failed = threads.filter((thread) => {
            thread.join();
            return thread.hasFailed();
        });
        assert.eq(0, failed.length, message || "a thread failed");
    }
}
