/**
 * Tests hold a command before it has its session, while it has it, and when it has run but not replied.
 * It fails if one of the points holds nothing, holds what its data leave out, or holds the command that lets go.
 *
 * @tags: [assumes_against_mongod_not_mongos, requires_replica_set]
 */
import {configureFailPoint} from "jstests/libs/fail_point_util.js";
import {funWithArgs} from "jstests/libs/parallel_shell_helpers.js";

const coll = db.fail_points_of_sessions;
coll.drop();
assert.commandWorked(coll.insert({_id: 0}));
const run = (command) => startParallelShell(funWithArgs((command) => assert.commandWorked(db.runCommand(command)), command), db.getMongo().port);
const waiting = (point) => db.currentOp({failpointMsg: point}).inprog.length;

const lsid = {id: UUID()};
const retryable = (id, number) => ({insert: coll.getName(), documents: [{_id: id}], lsid, txnNumber: NumberLong(number)});
["hangBeforeSessionCheckOut", "hangAfterSessionCheckOut"].forEach((name, i) => {
    const point = configureFailPoint(db, name, {uuid: lsid.id});
    assert.commandWorked(db.runCommand({insert: coll.getName(), documents: [{_id: "other " + i}], lsid: {id: UUID()}, txnNumber: NumberLong(1)}));
    const join = run(retryable(i + 1, i + 1));
    point.wait();
    assert.eq(1, waiting(name));
    assert.eq(null, coll.findOne({_id: i + 1}));
    point.off();
    join();
    assert.neq(null, coll.findOne({_id: i + 1}));
});

let point = configureFailPoint(db, "waitAfterCommandFinishesExecution", {ns: coll.getFullName(), commands: ["insert"]});
let join = run({insert: coll.getName(), documents: [{_id: "late"}]});
point.wait();
assert.eq(1, waiting("waitAfterCommandFinishesExecution"));
assert.neq(null, coll.findOne({_id: "late"}), "it has run");
assert.commandWorked(db.another.insert({}));
point.off();
join();

point = configureFailPoint(db, "waitAfterReadCommandFinishesExecution", {ns: coll.getFullName(), comment: "held"});
join = run({find: coll.getName(), comment: "held"});
point.wait();
assert.eq(1, waiting("waitAfterReadCommandFinishesExecution"));
assert.eq("late", coll.findOne({_id: "late"})._id);
assert.commandWorked(coll.insert({_id: "written"}));
point.off();
join();
