/**
 * A transaction ends with its primary unless it was committed; a commit asked for again finds what was done.
 * It fails if the next primary knows a transaction that was open, or forgets one that a majority has.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
assert.commandWorked(insert(old, [{_id: 0}], {w: 3, wtimeout: 20000}));
const statement = (lsid, command) => Object.assign({}, command, {lsid: lsid, txnNumber: NumberLong(1), autocommit: false});
const [open, done] = [{id: UUID()}, {id: UUID()}];
for (const lsid of [open, done]) {
    assert.commandWorked(old.getDB("test").runCommand(
        statement(lsid, {insert: "c", documents: [{_id: lsid === open ? "open" : "done"}], startTransaction: true})));
}
const commit = statement(done, {commitTransaction: 1, writeConcern: {w: "majority", wtimeout: 20000}});
assert.commandWorked(old.adminCommand(commit));
rst.stepUp(rst.getSecondary());
const primary = rst.getPrimary();
assert.neq(old.host, primary.host);
assert.commandWorked(primary.adminCommand(commit));
const refused = assert.commandFailedWithCode(primary.adminCommand(statement(open, {commitTransaction: 1})), 251);
assert.eq(["TransientTransactionError"], refused.errorLabels);
assert.commandFailed(old.adminCommand(statement(open, {commitTransaction: 1})));
rst.awaitReplication();
rst.nodes.forEach((node) => assert.eq([0, "done"], held(node).map((d) => d._id)));
rst.stopSet();
