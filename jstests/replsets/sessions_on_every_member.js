/**
 * Every member knows the same sessions, with the same statements, before and after a failover.
 * It fails if a table differs on a secondary, or on what was primary.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const table = (node) => {
    node.setSecondaryOk();
    return node.getDB("config").transactions.find().sort({_id: 1}).toArray();
};
const write = (n) => {
    for (let i = 0; i < n; i++) {
        const lsid = {id: UUID()};
        for (const number of [1, 2]) {
            assert.commandWorked(rst.getPrimary().getDB("test").runCommand({
                update: "c", updates: [{q: {_id: i}, u: {$inc: {n: 1}}, upsert: true}], lsid: lsid, txnNumber: NumberLong(number)
            }));
        }
        assert.commandWorked(rst.getPrimary().getDB("test").runCommand(
            {insert: "d", documents: [{}], lsid: lsid, txnNumber: NumberLong(3), autocommit: false, startTransaction: true}));
        assert.commandWorked(rst.getPrimary().adminCommand({commitTransaction: 1, lsid: lsid, txnNumber: NumberLong(3), autocommit: false}));
    }
};
const same = (n) => {
    rst.awaitReplication();
    const [first, ...others] = rst.nodes.map(table);
    assert.eq(n, first.length);
    others.forEach((other) => assert.eq(first, other));
};
assert.commandWorked(insert(rst.getPrimary(), [{_id: "x"}], {w: 3, wtimeout: 20000}));
write(5);
same(5);
rst.stepUp(rst.getSecondary());
write(5);
same(10);
rst.stopSet();
