/**
 * A member that would take back more than rollbackTimeLimitSecs ends instead, for a person to decide; where files of what is taken back
 * are not wanted there are none.
 * It fails if what is too old goes unasked, or if createRollbackDataFiles says nothing.
 *
 * @tags: [requires_own_servers]
 */
import {held, hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
const oldId = rst.getNodeId(old);
const others = rst.getSecondaries();
assert.commandWorked(insert(old, [{_id: "kept"}], {w: 3}));
const points = others.map(hold);
// What is on its way to them is applied later.
assert.commandWorked(insert(old, [{_id: "fetched"}]));
points.forEach((point) => point.wait());
assert.commandWorked(insert(old, [{_id: "first to go"}]));
// The entries tell by their seconds how far they are apart.
sleep(2500);
assert.commandWorked(insert(old, [{_id: "last to go"}], {w: 1, j: true}));
rst.stop(oldId, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
others.forEach(letGo);
assert.commandWorked(insert(rst.getPrimary(), [{_id: "new"}], {w: 2}));

const strict = rst.start(oldId, {setParameter: {rollbackTimeLimitSecs: 1}}, true);
assert.soon(() => !checkProgram(strict.pid).alive, "it takes back what it must not", 60000);
assert.eq(MongoRunner.EXIT_ABRUPT, Number(checkProgram(strict.pid).exitCode));

rst.start(oldId, {setParameter: {rollbackTimeLimitSecs: 3600, createRollbackDataFiles: false}}, true);
rst.awaitSecondaryNodes();
rst.awaitReplication();
assert.eq(["fetched", "kept", "new"], held(rst.nodes[oldId]).map((d) => d._id));
assert(!listFiles(rst.getDbPath(oldId)).some((file) => file.baseName === "rollback"));
rst.stopSet();
