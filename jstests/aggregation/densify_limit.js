/**
 * $densify makes no more documents than internalQueryMaxAllowedDensifyDocs allows.
 * It fails if the parameter is not heeded, or counts the documents of the input.
 *
 * @tags: [
 *   # The parameter is set on the node that is asked.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.densify_limit;
coll.drop();
assert.commandWorked(coll.insert([{n: 0}, {n: 10}]));
const pipeline = [{$densify: {field: "n", range: {step: 1, bounds: "full"}}}];
const set = (n) => assert.commandWorked(db.adminCommand({setParameter: 1, internalQueryMaxAllowedDensifyDocs: n})).was;
const before = set(9);
try {
    assert.eq(11, coll.aggregate(pipeline).itcount());
    set(8);
    assert.throwsWithCode(() => coll.aggregate(pipeline).itcount(), 5897900);
} finally {
    set(before);
}
