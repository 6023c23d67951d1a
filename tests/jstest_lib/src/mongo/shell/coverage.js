// Which natives a test has called. `Natives.watch` puts a counting wrapper in place of each; `Natives.done` fails for what
// was named and not called, or is not there at all.
var Natives = (function() {
    const calls = new Map();
    const place = (path) => {
        const parts = path.split(".");
        const last = parts.pop();
        return [parts.reduce((object, name) => (object === undefined ? undefined : object[name]), globalThis), last];
    };
    function watch(...paths) {
        for (const path of paths) {
            const [object, name] = place(path);
            calls.set(path, 0);
            const native = object === undefined ? undefined : object[name];
            if (typeof native !== "function") {
                continue;
            }
            const count = () => calls.set(path, calls.get(path) + 1);
            object[name] = new Proxy(native, {
                apply(target, self, args) {
                    count();
                    return Reflect.apply(target, self, args);
                },
                construct(target, args, newTarget) {
                    count();
                    return Reflect.construct(target, args, newTarget);
                },
            });
        }
    }
    // For methods of objects that no constructor makes, such as cursors and sessions.
    function watchMethods(kind, object, names) {
        for (const name of names) {
            calls.set(kind + "." + name, calls.get(kind + "." + name) || 0);
            assert.eq("function", typeof object[name], kind + "." + name);
        }
        return new Proxy(object, {
            get(target, name) {
                const value = target[name];
                if (typeof value !== "function" || !names.includes(name)) {
                    return value;
                }
                calls.set(kind + "." + name, calls.get(kind + "." + name) + 1);
                return value.bind(target);
            },
        });
    }
    // A native that exists in the real shell and is refused here, by its name: the runner lists those a test called.
    function refused(path, action) {
        calls.set(path, 1);
        assert.eq("missing native: " + path, assert.throws(action, path + " is refused").message);
    }
    function done() {
        const missed = [...calls].filter(([, n]) => n === 0).map(([path]) => path);
        assert.eq([], missed, "natives that were not called");
        print("called " + calls.size + " natives");
    }
    return {watch, watchMethods, refused, done};
})();
