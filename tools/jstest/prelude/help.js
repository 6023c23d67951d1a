// `help()` of the shell's classes: what there is to call, by name.
(function (global) {
    "use strict";

    for (const constructor of [Mongo, DB, DBCollection, DBQuery, DBCommandCursor, PlanCache, Explainable]) {
        global._defineMethods(constructor.prototype, {
            help() {
                const names = Object.getOwnPropertyNames(constructor.prototype).filter(name => !name.startsWith("_")).sort();
                print(constructor.name + " methods:\n\t" + names.map(name => name + "()").join("\n\t"));
            },
        });
    }
})(globalThis);
