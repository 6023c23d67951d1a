/**
 * validateDBMetadata lists what the stable API lacks as far as a reply can hold it, and says that there is more.
 * It fails if the reply is too large, or keeps silent of the rest.
 *
 * @tags: [assumes_unsharded_collection]
 */
const indexed = (name, count) => {
    const coll = db[name];
    coll.drop();
    const indexes = Array.from(Array(count).keys(), (i) => ({key: {["f" + i]: 1}, name: "x".repeat(200 * 1024) + i, sparse: true}));
    indexes.forEach((index) => assert.commandWorked(db.runCommand({createIndexes: name, indexes: [index]})));
    return coll;
};
const listed = () => assert.commandWorked(
    db.runCommand({validateDBMetadata: 1, db: db.getName(), apiParameters: {version: "1", strict: true}}));

const one = indexed("more_errors_one", 40);
let reply = listed();
assert.eq([40, undefined], [reply.apiVersionErrors.length, reply.hasMoreErrors]);
const two = indexed("more_errors_two", 50);
reply = listed();
assert.eq(true, reply.hasMoreErrors);
assert.between(75, reply.apiVersionErrors.length, 85);
assert(reply.apiVersionErrors.every((error) => error.code === 323), "an error of another kind");
[one, two].forEach((coll) => assert(coll.drop()));
