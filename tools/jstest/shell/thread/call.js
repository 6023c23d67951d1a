// What a new thread calls: makes the function and its arguments from what has travelled, and calls it.
(function(source, args, testData) {
    const globalEval = eval;
    function functionOf(text) {
        try {
            return globalEval("(" + text + "\n)");
        } catch (error) {
            if (!(error instanceof SyntaxError)) {
                throw error;
            }
            // A method of a class or an object has a source that is no expression.
            const holder = globalEval("({" + text + "\n})");
            return holder[Object.keys(holder)[0]];
        }
    }
    function revived(value) {
        if (value instanceof Code && value.scope === undefined) {
            return functionOf(String(value.code));
        }
        if (Array.isArray(value) || (value && Object.getPrototypeOf(value) === Object.prototype)) {
            for (const key of Object.keys(value)) {
                const before = value[key];
                const after = revived(before);
                if (after !== before) {
                    value[key] = after;
                }
            }
        }
        return value;
    }
    if (testData !== undefined) {
        globalThis.TestData = revived(testData);
    }
    return functionOf(source)(...revived(args));
})
