/**
 * A parallel shell runs text, a function, or a function with arguments, against the server that `db` is connected to.
 * It fails if the shell lands on another server or database, if its failure is not seen, or if TestData does not reach it.
 *
 * @tags: [requires_own_servers]
 */
import { funWithArgs } from "jstests/libs/parallel_shell_helpers.js";

const conn = MongoRunner.runMongod();
globalThis.db = conn.getDB("parallel_shell_forms");
TestData.wordForTheOtherShell = "heard";
const coll = db.getCollection("c");
const join = (shell) => assert.eq(0, shell());

join(startParallelShell("assert.commandWorked(db.c.insert({_id: 'text'}));"));
join(startParallelShell(function () {
    assert.commandWorked(db.c.insert({ _id: "function", word: TestData.wordForTheOtherShell, db: db.getName() }));
}));
join(startParallelShell(() => { db.c.insert({ _id: "arrow" }); }, conn.port));
join(startParallelShell(funWithArgs(function (id, long, date, nested) {
    assert.eq(0, bsonWoCompare({ list: [1, 5, MinKey, { a: MaxKey }], none: null }, nested), tojson(nested));
    assert(long instanceof NumberLong && date instanceof Date, tojson([long, date]));
    db.c.insert({ _id: id });
}, "arguments", NumberLong(3), new Date(0), { list: [1, 5, MinKey, { a: MaxKey }], none: null })));
join(startParallelShell(funWithArgs(async function (id) {
    const { extractUUIDFromObject } = await import("jstests/libs/uuid_util.js");
    const uuid = UUID();
    assert.eq(36, extractUUIDFromObject(uuid).length);
    db.c.insert({ _id: id });
}, "async")));

assert.eq(["arguments", "arrow", "async", "function", "text"], coll.find().sort({ _id: 1 }).toArray().map((doc) => doc._id));
assert.eq({ _id: "function", word: "heard", db: "parallel_shell_forms" }, coll.findOne({ _id: "function" }));

// Without a connection.
join(startParallelShell("assert.eq('undefined', typeof db);", undefined, true));
// Both run at once: each waits for what the other writes.
const ping = startParallelShell(() => {
    db.ball.insert({ _id: "ping" });
    assert.soon(() => db.ball.findOne({ _id: "pong" }) !== null);
});
assert.soon(() => db.ball.findOne({ _id: "ping" }) !== null);
db.ball.insert({ _id: "pong" });
join(ping);

const failing = () => startParallelShell("throw new Error('as intended');");
assert.throws(failing(), [], "a shell that failed fails its join");
assert.neq(0, failing()({ checkExitSuccess: false }));
assert.eq(5, startParallelShell("quit(5);")({ checkExitSuccess: false }));

MongoRunner.stopMongod(conn);
