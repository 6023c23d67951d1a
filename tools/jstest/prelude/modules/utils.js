// Comparing results whose order does not matter, and expecting errors of pipelines.
const without = (doc, skipped) => {
    if (skipped.length === 0 || doc === null || typeof doc !== "object" || Array.isArray(doc)) return doc;
    return Object.fromEntries(Object.entries(doc).filter(([name]) => !skipped.includes(name)));
};
const sameUnordered = (a, b) => bsonUnorderedFieldsCompare({ v: a }, { v: b }) === 0;

export function anyEq(a, b, verbose = false, compare, skipped = []) {
    if (Array.isArray(a) && Array.isArray(b)) return arrayEq(a, b, verbose, compare, skipped);
    const [left, right] = [without(a, skipped), without(b, skipped)];
    if (isDocument(left) && isDocument(right)) return documentEq(left, right, verbose, compare, skipped);
    const equal = compare ? compare(left, right) : sameUnordered(left, right);
    if (verbose && !equal) print(`${tojson(a)} is not ${tojson(b)}`);
    return equal;
}
const isDocument = (value) => value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;

// Documents are equal with the same fields in any order; arrays with the same elements in any order.
export function documentEq(a, b, verbose = false, compare, skipped = []) {
    const names = (doc) => Object.keys(doc).filter((name) => !skipped.includes(name));
    const [left, right] = [names(a), names(b)];
    return left.length === right.length && left.every((name) => name in b && anyEq(a[name], b[name], verbose, compare, skipped));
}
export const customDocumentEq = ({ left, right, verbose = false, valueComparator, fieldsToSkip = [] }) =>
    documentEq(left, right, verbose, valueComparator, fieldsToSkip);

export function arrayEq(actual, expected, verbose = false, compare, skipped = []) {
    if (actual.length !== expected.length) {
        if (verbose) print(`${actual.length} elements, expected ${expected.length}`);
        return false;
    }
    const left = [...expected];
    for (const one of actual) {
        const at = left.findIndex((other) => anyEq(one, other, false, compare, skipped));
        if (at < 0) {
            if (verbose) print(`unexpected: ${tojson(one)}`);
            return false;
        }
        left.splice(at, 1);
    }
    return true;
}
export function orderedArrayEq(a, b, verbose = false, skipped = []) {
    return a.length === b.length && a.every((one, i) => anyEq(one, b[i], verbose, undefined, skipped));
}
export const resultsEq = (a, b, verbose, skipped) => arrayEq(a, b, verbose, undefined, skipped);

export function assertArrayEq({ actual, expected, fieldsToSkip = [], extraErrorMsg = "" } = {}) {
    assert(arrayEq(actual, expected, false, undefined, fieldsToSkip), `actual=${tojson(actual)}, expected=${tojson(expected)} ${extraErrorMsg}`);
}
export function assertDocumentEq({ actual, expected, fieldsToSkip = [], extraErrorMsg = "" }) {
    assert(documentEq(actual, expected, false, undefined, fieldsToSkip), `actual=${tojson(actual)}, expected=${tojson(expected)} ${extraErrorMsg}`);
}
export const assertResultsEq = assertArrayEq;

// ---- errors ----

const asPipeline = (given) => (Array.isArray(given) ? given : [given]);

function run(coll, pipeline, options) {
    const command = { aggregate: coll.getName(), pipeline: asPipeline(pipeline), cursor: {}, ...options };
    const reply = coll.getDB().runCommand(command);
    if (!reply.ok) return reply;
    try {
        new DBCommandCursor(coll.getDB(), reply).itcount();
        return reply;
    } catch (error) {
        return { ok: 0, code: error.code, errmsg: error.message };
    }
}
export function assertErrorCode(coll, pipeline, code, message = "", options = {}) {
    const reply = run(coll, pipeline, options);
    assert.commandFailedWithCode(reply, code, message);
    return reply;
}
export function assertErrMsgContains(coll, pipeline, expected) {
    const reply = run(coll, pipeline, {});
    assert.eq(0, reply.ok, tojson(reply));
    assert(reply.errmsg.includes(expected), `'${expected}' is not in '${reply.errmsg}'`);
}
export function assertErrMsgDoesNotContain(coll, pipeline, unexpected) {
    const reply = run(coll, pipeline, {});
    assert.eq(0, reply.ok, tojson(reply));
    assert(!reply.errmsg.includes(unexpected), `'${unexpected}' is in '${reply.errmsg}'`);
}
export function assertErrCodeAndErrMsgContains(coll, pipeline, code, expected) {
    const reply = assertErrorCode(coll, pipeline, code);
    assert(reply.errmsg.includes(expected), `'${expected}' is not in '${reply.errmsg}'`);
}

// ---- expressions ----

export function testExpression(coll, expression, result) {
    testExpressionWithCollation(coll, expression, result);
}
export function testExpressionWithCollation(coll, expression, result, collation) {
    const options = collation === undefined ? {} : { collation };
    const [found] = coll.aggregate([{ $limit: 1 }, { $project: { _id: 0, output: expression } }], options).toArray();
    assert.eq(found.output, result);
}
