/**
 * A member that was away until the others had let go of what comes next in its log copies everything anew, from one of them, and at once.
 * It fails if such a member stays behind for long, or goes on with entries missing.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {more: {oplogSize: 1}});
const away = rst.getNodeId(rst.getSecondary());
assert.commandWorked(insert(rst.getPrimary(), [{_id: "before"}], {w: 3, wtimeout: 20000}));
const newest = rst.nodes[away].getDB("local").oplog.rs.find().sort({$natural: -1}).limit(1).next().ts;
rst.stop(away);

// Sizes are kept roughly: the log is let go of file by file.
const oldest = (node) => node.getDB("local").oplog.rs.find().sort({$natural: 1}).limit(1).next().ts;
const filler = "x".repeat(1 << 20);
const others = rst.nodes.filter((node, id) => id !== away);
others.forEach((node) => node.setSecondaryOk());
let n = 0;
assert.soon(() => {
    assert.commandWorked(insert(rst.getPrimary(), Array.from({length: 8}, () => ({_id: n++, filler})), {w: 2, wtimeout: 60000}));
    others.forEach((node) => assert.commandWorked(node.adminCommand({fsync: 1})));
    return others.every((node) => bsonWoCompare({t: oldest(node)}, {t: newest}) > 0);
}, "the log is kept for ever", 120000);

rst.start(away, {}, true);
const back = rst.nodes[away];
// It is a secondary, as it was, until it has heard of the others.
const copies = () => Number(assert.commandWorked(back.adminCommand({serverStatus: 1})).metrics.repl.initialSync.completed);
assert.soon(() => copies() === 1, "it stays behind", 30000);
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.eq(n + 1, held(back).length);
rst.checkReplicatedDataHashes();
rst.stopSet();
