/**
 * A primary that is shut down by command lets a member that has everything take over first, and goes on where none can. So a restart in
 * turn loses no write and leaves no gap of an election timeout.
 * It fails if the set has no primary for long, if a write is lost, or if a primary goes that nobody can replace, unforced.
 *
 * @tags: [requires_own_servers]
 */
import {held, holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 60000}});
let primary = rst.getPrimary();
const others = rst.getSecondaries();
holdBehind(primary, others);
assert.commandWorked(insert(primary, [{_id: "theirs too"}]));
const refused = primary.adminCommand({shutdown: 1, timeoutSecs: 1});
assert.commandFailedWithCode(refused, ErrorCodes.ExceededTimeLimit);
assert.commandWorked(insert(primary, [{_id: "goes on"}]));

const id = rst.getNodeId(primary);
const ending = startParallelShell(
    funWithArgs((host) => assert.throws(() => new Mongo(host).adminCommand({shutdown: 1})), primary.host), primary.port, true);
others.forEach(letGo);
ending();
assert.soon(() => others.some((node) => node.adminCommand({hello: 1}).isWritablePrimary), "nobody has taken over", 20000);
primary = others.find((node) => node.adminCommand({hello: 1}).isWritablePrimary);
assert.eq(["goes on", "on its way", "theirs too"], held(primary).map((d) => d._id).sort());
rst.stop(id);
rst.start(id, {}, true);
rst.awaitReplication();
rst.stopSet();
