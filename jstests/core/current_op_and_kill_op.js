/**
 * Operators look at what runs through currentOp and end it through killOp.
 * Fails when a running operation is not shown with its command, or a killed one goes on or ends as something else than interrupted.
 */
import { configureFailPoint } from "jstests/libs/fail_point_util.js";
import { funWithArgs } from "jstests/libs/parallel_shell_helpers.js";

const coll = db.current_op_and_kill_op;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));

const marker = "current_op_and_kill_op " + ObjectId();
const failPoint = {
    configureFailPoint: "failCommand",
    mode: "alwaysOn",
    data: {failCommands: ["distinct"], namespace: coll.getFullName(), blockConnection: true, blockTimeMS: 20 * 1000}
};
assert.commandWorked(db.adminCommand(failPoint));
let shell;
try {
    shell = startParallelShell(`
        const reply = db.runCommand({distinct: "${coll.getName()}", key: "_id", comment: "${marker}"});
        assert.commandFailedWithCode(reply, ErrorCodes.Interrupted);
    `, db.getMongo().port);

    // A router shows the operations of its shards, and its own on demand.
    const running = {"command.comment": marker, "command.distinct": coll.getName()};
    const pipeline = [{$currentOp: {localOps: true}}, {$match: running}];
    let op;
    assert.soon(() => {
        op = db.getSiblingDB("admin").aggregate(pipeline).toArray()[0];
        return op !== undefined;
    }, "the running operation is not shown", 15 * 1000);
    assert.eq(true, op.active);
    assert.eq("op", op.type);
    assert.eq(coll.getFullName(), op.ns);
    assert.eq("_id", op.command.key);
    assert(op.hasOwnProperty("opid"));
    assert(op.hasOwnProperty("secs_running"));
    assert(op.hasOwnProperty("microsecs_running"));

    // The command shows the same operation.
    if (db.hello().msg !== "isdbgrid") {
        const listed = assert.commandWorked(db.adminCommand(Object.assign({currentOp: 1}, running))).inprog;
        assert.eq([op.opid], listed.map(other => other.opid), () => tojson(listed));
    }

    assert.commandWorked(db.adminCommand({killOp: 1, op: op.opid}));
    shell();
    shell = undefined;
} finally {
    assert.commandWorked(db.adminCommand({configureFailPoint: "failCommand", mode: "off"}));
    if (shell !== undefined) {
        shell({checkExitSuccess: false});
    }
}
assert.eq([1], coll.distinct("_id"));

// Nobody is hurt by an id that no operation has; what is no id is refused.
assert.commandWorked(db.adminCommand({killOp: 1, op: 123456789}));
assert.commandFailedWithCode(db.adminCommand({killOp: 1}), [ErrorCodes.NoSuchKey, 40414]);
assert.commandFailedWithCode(db.adminCommand({killOp: 1, op: "nothing"}), [ErrorCodes.TypeMismatch, ErrorCodes.BadValue]);
assert.commandWorked(db.adminCommand({killOp: 1, op: NumberDecimal("123456789")}));
for (const [op, code] of [[null, ErrorCodes.TypeMismatch], [1.5, ErrorCodes.BadValue], [NaN, ErrorCodes.BadValue], [NumberLong("2147483648"), 26823]]) {
    assert.commandFailedWithCode(db.adminCommand({killOp: 1, op: op}), code, tojson(op));
}
assert.commandFailedWithCode(db.runCommand({killOp: 1, op: 1}), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(db.runCommand({currentOp: 1}), ErrorCodes.Unauthorized);

// A long command is shown as text that is cut off, unless somebody asks for all of it.
if (db.hello().msg !== "isdbgrid") {
    const comment = "long " + ObjectId();
    const point = configureFailPoint(db, "waitInFindBeforeMakingBatch", {nss: coll.getFullName()});
    const shell = startParallelShell(funWithArgs((name, comment) => {
        db.getSiblingDB("test").runCommand({find: name, filter: {a: {$in: Array.from({length: 130}, (_, i) => 1000 + i)}}, comment});
    }, coll.getName(), comment), db.getMongo().port);
    point.wait();
    const shown = (stage) => db.getSiblingDB("admin").aggregate([{$currentOp: stage}, {$match: {"command.comment": comment}}]).toArray()[0].command;
    assert.eq(coll.getName(), shown({}).find);
    assert.eq(undefined, shown({truncateOps: true}).find);
    assert.eq(1000, shown({truncateOps: true}).$truncated.length);
    const command = (options) => assert.commandWorked(db.adminCommand(Object.assign({currentOp: 1, "command.comment": comment}, options))).inprog[0].command;
    assert(command({}).$truncated.startsWith("{ find: "), tojson(command({})));
    assert.eq(coll.getName(), command({$truncateOps: false}).find);
    point.off();
    shell();
}
