/**
 * A member that joins while collections are written, indexed, renamed and dropped has in the end what the others have.
 * It fails if its copy misses or doubles anything.
 *
 * @tags: [requires_own_servers]
 */
import {insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(1);
const primary = rst.getPrimary();
const db = primary.getDB("test");
for (let n = 0; n < 20; n++) {
    assert.commandWorked(insert(primary, Array.from({length: 100}, (_, i) => ({_id: n * 100 + i, k: i}))));
}
const join = startParallelShell(() => {
    const test = db.getSiblingDB("test");
    // Until it is told that the copy is made.
    for (let i = 0; i < 150 || test.told.findOne() === null; i++) {
        assert.commandWorked(test.c.update({_id: i}, {$inc: {k: 1000}}));
        assert.commandWorked(test.c.remove({_id: 1000 + i}));
        assert.commandWorked(test.c.insert({_id: "late" + i, k: i}));
        if (i % 30 === 0) {
            assert.commandWorked(test["r" + i].insert({i: i}));
            assert.commandWorked(test["r" + i].renameCollection("renamed" + i));
            assert.commandWorked(test.c.createIndex({["f" + i % 600]: 1}));
            if (i > 30) {
                assert(test["renamed" + (i - 30)].drop());
            }
        }
    }
}, primary.port);
const added = rst.add({});
assert.commandWorked(reconfig(rst, (config) => config.members.push({_id: 1, host: added.host})));
rst.awaitSecondaryNodes();
assert.commandWorked(db.told.insert({_id: 1}));
join();
rst.awaitReplication();
rst.checkReplicatedDataHashes();
const names = (node) => node.getDB("test").c.getIndexes().map((i) => i.name).sort();
added.setSecondaryOk();
assert.eq(names(primary), names(added));
assert.eq(primary.getDB("test").c.find().itcount(), added.getDB("test").c.find().itcount());
rst.stopSet();
