/**
 * A member that takes back what it had ends what its clients do and closes their connections, so that nobody goes on with what is gone; a
 * connection that was asked to stay stays, and the other members are answered all the while.
 * It fails if a client's connection or command outlives the beginning of a rollback, or if one is closed that was to stay.
 *
 * @tags: [requires_own_servers]
 */
import {elect, held, holdBehind, insert, letGo, row, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 60000, catchUpTimeoutMillis: 0}});
const [old, others] = [rst.getPrimary(), rst.getSecondaries()];
assert.commandWorked(insert(old, [{_id: "kept"}], {w: 3, wtimeout: 60000}));

const [idle, stays] = [new Mongo(old.host), new Mongo(old.host)];
assert.commandWorked(idle.adminCommand({ping: 1}));
assert.commandWorked(stays.adminCommand({hello: 1, hangUpOnStepDown: false}));
const waits = () => {
    try {
        const reply = db.adminCommand({waitForFailPoint: "dummy", timesEntered: 1000, maxTimeMS: 10 * 60 * 1000});
        assert.commandFailedWithCode(reply, ErrorCodes.InterruptedDueToReplStateChange);
    } catch (error) {
        assert(isNetworkError(error), tojson(error));
    }
};
const waiting = startParallelShell(waits, old.port);
const operations = () => stays.getDB("admin").aggregate([{$currentOp: {}}]).toArray();
assert.soon(() => operations().some((op) => op.command && op.command.waitForFailPoint === "dummy"), () => tojson(operations()));

const point = "rollbackHangAfterTransitionToRollback";
assert.commandWorked(stays.adminCommand({configureFailPoint: point, mode: "alwaysOn"}));
holdBehind(old, others);
assert.commandWorked(insert(old, [{_id: "lost"}]));
const primary = elect(rst, others);
others.forEach(letGo);
assert.commandWorked(insert(primary, [{_id: "new"}], {w: "majority", wtimeout: 60000}));

const state = () => assert.commandWorked(stays.adminCommand({replSetGetStatus: 1})).myState;
assert.soon(() => state() === 9, "it takes nothing back", 60000);
const closed = () => {
    try {
        idle.adminCommand({ping: 1});
        return false;
    } catch (error) {
        return isNetworkError(error);
    }
};
assert.soon(closed, "the connection stays open");
assert.commandWorked(idle.adminCommand({ping: 1}));
waiting();
const told = assert.commandWorked(stays.adminCommand({serverStatus: 1})).metrics.repl.stateTransition;
assert.eq("rollback", told.lastStateTransition);
assert.gte(told.totalOperationsKilled, 1);
assert.soon(() => row(primary, old).stateStr === "ROLLBACK", () => tojson(row(primary, old)), 60000);

assert.commandWorked(stays.adminCommand({configureFailPoint: point, mode: "off"}));
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.eq([], held(old).filter((d) => d._id === "lost"));
assert.eq(1, held(old).filter((d) => d._id === "new").length);
assert.commandWorked(stays.adminCommand({ping: 1}));
rst.stopSet();
