/**
 * A cursor that a client leaves open keeps what has been built for it, and so counts where memory is short: another one is refused,
 * while a small one, with which the data can be read, is kept.
 * It fails if cursors that hold results can be opened above the process's memory limit, or if a plain find cannot.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod({});
const db = conn.getDB("cursors");
const limit = (megabytes) => assert.commandWorked(conn.adminCommand({setParameter: 1, processMemoryLimitMB: megabytes}));
assert.commandWorked(db.c.insert([...Array(200).keys()].map(i => ({_id: i, s: i + "x".repeat(1000)}))));
const holding = [
    {find: "c", sort: {s: 1}, batchSize: 1},
    {aggregate: "c", pipeline: [{$group: {_id: "$s"}}], cursor: {batchSize: 1}},
    {aggregate: "c", pipeline: [{$sort: {s: -1}}], cursor: {batchSize: 1}},
    {find: "c", filter: {s: {$ne: "y".repeat(20000)}}, batchSize: 1},
];
const open = () => conn.adminCommand({serverStatus: 1}).metrics.cursor.open.total;

limit(1);
const before = open();
for (const command of holding) {
    assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.ExceededMemoryLimit, tojsononeline(command).slice(0, 100));
}
assert.eq(before, open());
const small = assert.commandWorked(db.runCommand({find: "c", batchSize: 1})).cursor;
assert.eq(199, assert.commandWorked(db.runCommand({getMore: small.id, collection: "c"})).cursor.nextBatch.length);

limit(0);
for (const command of holding) {
    assert.neq(0, assert.commandWorked(db.runCommand(command)).cursor.id);
}
MongoRunner.stopMongod(conn);
