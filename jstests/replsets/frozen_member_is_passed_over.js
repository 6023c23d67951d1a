/**
 * A frozen member does not stand when the primary goes, and another does. It fails if it leads, or if nobody does.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 1000}});
const old = rst.getPrimary();
const [frozen, other] = rst.getSecondaries();
assert.commandWorked(insert(old, [{_id: 1}], {w: 3, wtimeout: 20000}));
rst.freeze(frozen, 60);
rst.stop(rst.getNodeId(old), 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
assert.eq(other.host, rst.getPrimary().host);
assert.commandWorked(insert(other, [{_id: 2}], {w: 2, wtimeout: 20000}));
// It still votes: it was needed for the majority.
assert(!frozen.adminCommand({hello: 1}).isWritablePrimary);
rst.stopSet();
