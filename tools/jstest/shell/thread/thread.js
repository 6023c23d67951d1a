// The classes over the natives of threads and latches. A foreign library may replace them by its own over the same
// natives.
(function(global) {
    function make(name, inject) {
        const constructor = {[name]: function(...args) {
            if (!new.target) {
                return new constructor(...args);
            }
            this.init(...args);
        }}[name];
        inject(constructor.prototype);
        global[name] = constructor;
    }
    make("Thread", _threadInject);
    make("ScopedThread", _scopedThreadInject);

    // The methods are members of every instance, because prototypes do not travel to other threads.
    global.CountDownLatch = Object.assign(function CountDownLatch(count) {
        if (!(this instanceof CountDownLatch)) {
            return new CountDownLatch(count);
        }
        this._descriptor = CountDownLatch._new(count);
        this.await = function() {
            CountDownLatch._await(this._descriptor);
        };
        this.countDown = function() {
            CountDownLatch._countDown(this._descriptor);
        };
        this.getCount = function() {
            return CountDownLatch._getCount(this._descriptor);
        };
    }, global.CountDownLatch);
})(globalThis);
