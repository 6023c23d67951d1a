/**
 * count answers from the query, and within skip and limit.
 * Fails when skip or limit is not applied, orphaned or deleted documents are counted, or a negative skip is taken.
 */
const coll = db.count_documents;
coll.drop();
assert.eq(0, coll.count());
assert.commandWorked(coll.insert([...Array(20).keys()].map(i => ({_id: i, g: i % 4}))));
const name = coll.getName();

function n(options) {
    return assert.commandWorked(db.runCommand(Object.assign({count: name}, options))).n;
}
assert.eq(20, n({}));
assert.eq(5, n({query: {g: 1}}));
assert.eq(2, n({query: {g: 1}, skip: 3}));
assert.eq(0, n({query: {g: 1}, skip: 30}));
assert.eq(4, n({query: {g: 1}, limit: 4}));
assert.eq(4, n({query: {g: 1}, limit: -4}));
assert.eq(1, n({query: {g: 1}, skip: 4, limit: 4}));
assert.eq(15, n({skip: 5}));
assert.eq(7, n({limit: 7}));
assert.eq(20, n({limit: 0}));
assert.eq(0, assert.commandWorked(db.runCommand({count: "count_no_such_collection"})).n);

assert.commandWorked(coll.createIndex({g: 1}));
assert.eq(5, n({query: {g: 1}}));
assert.eq(10, n({query: {g: {$in: [0, 3]}}}));
assert.eq(15, n({query: {g: {$gt: 0}}}));

assert.commandWorked(coll.remove({g: 0}));
assert.eq(15, n({}));
assert.eq(0, n({query: {g: 0}}));
assert.eq(15, coll.countDocuments({}));
assert.eq(5, coll.countDocuments({g: 2}));
assert.eq(2, coll.countDocuments({g: 2}, {limit: 2}));
assert.eq(15, coll.estimatedDocumentCount());
assert.eq(3, coll.find({g: 2}).skip(2).count(true));
assert.eq(5, coll.find({g: 2}).skip(2).count());
assert.eq(3, coll.find({g: 2}).skip(2).size());

assert.commandFailedWithCode(db.runCommand({count: name, skip: -1}), [ErrorCodes.BadValue, 51024]);
assert.commandFailedWithCode(db.runCommand({count: name, query: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.runCommand({count: name, query: {g: {$bad: 1}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({count: name, limit: "5"}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({count: name, unheardOf: 5}), 40415);
assert.commandFailedWithCode(db.runCommand({count: ""}), ErrorCodes.InvalidNamespace);
