/**
 * A member that has copied entries which are not committed, and so has nothing from before them in its log, copies anew where the next
 * primary is without them: what is committed is there, and nobody needs to decide anything.
 * It fails if the member ends, or if it is left with what the set does not have.
 *
 * @tags: [requires_own_servers]
 */
import {elect, held, holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

// The next primary does not fetch what the member has copied.
const settings = {electionTimeoutMillis: 5000, catchUpTimeoutMillis: 0};
const rst = startedSet(4, {members: {3: {votes: 0, priority: 0}}, settings});
assert.commandWorked(insert(rst.getPrimary(), [{_id: "all have"}], {w: 4, wtimeout: 60000}));
const old = rst.getPrimary();
const voters = rst.getSecondaries().filter((node) => rst.getNodeId(node) !== 3);
rst.stop(3);
// The voters apply nothing more: the copy begins with what only the primary has.
holdBehind(old, voters);
assert.commandWorked(insert(old, [{_id: "copied"}]));
const fromPrimary = {initialSyncSourceReadPreference: "primary"};
const copier = rst.start(3, {startClean: true, setParameter: fromPrimary}, false);
copier.setSecondaryOk();
assert.soonNoExcept(() => copier.adminCommand({hello: 1}).secondary && held(copier).some((d) => d._id === "copied"));
// It has heard what is committed before that.
const committed = () => assert.commandWorked(copier.adminCommand({replSetGetStatus: 1})).optimes.lastCommittedOpTime.ts;
assert.soon(() => timestampCmp(committed(), Timestamp(0, 0)) > 0);
rst.stop(old, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
voters.forEach(letGo);
const next = elect(rst, voters);
assert.commandWorked(insert(next, [{_id: "theirs"}], {w: 2, wtimeout: 60000}));

assert.soonNoExcept(() => held(copier).some((d) => d._id === "theirs"), "it does not follow", 90000);
assert.eq([], held(copier).filter((d) => d._id === "copied"));
assert(checkProgram(copier.pid).alive);
rst.start(old, {}, true);
rst.awaitSecondaryNodes();
rst.awaitReplication();
rst.stopSet();
