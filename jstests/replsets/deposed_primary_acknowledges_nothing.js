/**
 * A primary that nobody follows acknowledges no majority by its own progress, and what it wrote is not committed by a later
 * term. It fails if its commit point moves, or if such a write is read with level majority.
 *
 * @tags: [requires_own_servers]
 */
import {held, holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
const secondaries = rst.getSecondaries();
const committed = () => assert.commandWorked(old.adminCommand({replSetGetStatus: 1})).optimes.lastCommittedOpTime;
assert.commandWorked(insert(old, [{_id: 0}], {w: 3, wtimeout: 20000}));
// That all have it in memory does not say that it is committed: positions of what is durable may yet arrive.
rst.awaitLastOpCommitted();
holdBehind(old, secondaries);
const before = committed();
assert.eq(64, insert(old, [{_id: "lost"}], {w: "majority", wtimeout: 500}).writeConcernError.code);
assert.eq(before, committed());
const read = old.getDB("test").runCommand({find: "c", filter: {_id: "lost"}, readConcern: {level: "majority"}, maxTimeMS: 300});
assert(read.ok ? read.cursor.firstBatch.length === 0 : read.code === 50, tojson(read));
// The next reign begins from what the others have.
rst.stop(rst.getNodeId(old), 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
secondaries.forEach(letGo);
const next = rst.getPrimary();
assert.commandWorked(insert(next, [{_id: "next"}], {w: "majority", wtimeout: 20000}));
assert(!held(next).some((d) => d._id === "lost"));
rst.start(rst.getNodeId(old), {}, true);
rst.awaitSecondaryNodes();
rst.awaitReplication();
rst.nodes.forEach((node) => assert(!held(node).some((d) => d._id === "lost")));
rst.stopSet();
