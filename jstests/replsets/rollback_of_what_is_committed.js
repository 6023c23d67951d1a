/**
 * A member that has what a majority acknowledged, and finds that the others lost it with their disks, ends: it may be the last to have it.
 * It fails if the member takes the others' history, if it asks them for ever, or if it has lost something when it ends.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const keeper = rst.getNodeId(rst.getPrimary());
const others = rst.getSecondaries().map((node) => rst.getNodeId(node));
const aside = (id) => rst.getDbPath(id) + "-aside";
const put = (from, to) => { resetDbpath(to); copyDbpath(from, to); };
assert.commandWorked(insert(rst.getPrimary(), [{_id: "before"}], {w: 3, j: true}));

// The disks of two members as they were before what is committed next.
others.forEach((id) => rst.stop(id));
others.forEach((id) => put(rst.getDbPath(id), aside(id)));
others.forEach((id) => rst.start(id, {}, true));
rst.awaitSecondaryNodes();
rst.stepUp(rst.nodes[keeper]);
for (let i = 0; i < 5; i++) {
    assert.commandWorked(insert(rst.nodes[keeper], [{_id: "committed " + i}], {w: "majority", j: true}));
}
rst.awaitLastOpCommitted();
others.forEach((id) => rst.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}));
rst.stop(keeper);
others.forEach((id) => put(aside(id), rst.getDbPath(id)));
others.forEach((id) => rst.start(id, {}, true));
assert.commandWorked(insert(rst.getPrimary(), [{_id: "after"}], {w: 2, j: true}));

const asked = rst.start(keeper, {}, true);
assert.soon(() => !checkProgram(asked.pid).alive, "it goes on without what is committed", 60000);
assert.eq(MongoRunner.EXIT_ABRUPT, Number(checkProgram(asked.pid).exitCode));
const alone = MongoRunner.runMongod({dbpath: rst.getDbPath(keeper), noCleanData: true});
const kept = alone.getDB("test").c.find().sort({_id: 1}).toArray().map((d) => d._id);
assert.eq(["before", ...Array.from(Array(5).keys(), (i) => "committed " + i)], kept);
MongoRunner.stopMongod(alone);
rst.remove(keeper);
rst.stopSet();
