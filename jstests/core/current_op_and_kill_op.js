/**
 * Operators look at what runs through currentOp and end it through killOp.
 * Fails when a running operation is not shown with its command, or a killed one goes on or ends as something else than interrupted.
 */
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

    let op;
    assert.soon(() => {
        const ops = assert.commandWorked(db.adminCommand({currentOp: 1, "command.comment": marker})).inprog;
        op = ops.filter(candidate => candidate.command && candidate.command.distinct === coll.getName())[0];
        return op !== undefined;
    });
    assert.eq(true, op.active);
    assert.eq("op", op.type);
    assert.eq(coll.getFullName(), op.ns);
    assert.eq("_id", op.command.key);
    assert(op.hasOwnProperty("opid"));
    assert(op.hasOwnProperty("secs_running"));
    assert(op.hasOwnProperty("microsecs_running"));

    // The aggregation stage shows the same operation.
    const staged = db.getSiblingDB("admin").aggregate([{$currentOp: {localOps: true}}, {$match: {"command.comment": marker, "command.distinct": coll.getName()}}]).toArray();
    assert.eq(1, staged.length, () => tojson(staged));
    assert.eq(op.opid, staged[0].opid);

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
assert.commandFailedWithCode(db.runCommand({killOp: 1, op: 1}), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(db.runCommand({currentOp: 1}), ErrorCodes.Unauthorized);
