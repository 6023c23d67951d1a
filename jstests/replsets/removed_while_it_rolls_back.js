/**
 * A member that is removed while it takes back what the set is without, and added again, follows as before.
 * It fails if the member stays in ROLLBACK.
 *
 * @tags: [requires_own_servers]
 */
import {elect, held, holdBehind, insert, letGo, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 5000}});
assert.commandWorked(insert(rst.getPrimary(), [{_id: "all have"}], {w: 3, wtimeout: 60000}));
const [old, others] = [rst.getPrimary(), rst.getSecondaries()];
const id = rst.getNodeId(old);
holdBehind(old, others);
assert.commandWorked(insert(old, [{_id: "lost"}], {w: 1, j: true}));
rst.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}, {forRestart: true});
others.forEach(letGo);
assert.commandWorked(insert(elect(rst, others), [{_id: "theirs"}], {w: 2, wtimeout: 60000}));

const back = rst.start(id, {setParameter: {"failpoint.rollbackHangAfterTransitionToRollback": tojson({mode: "alwaysOn"})}}, true);
const state = () => {
    const said = back.adminCommand({replSetGetStatus: 1});
    return said.ok ? said.myState : said.state;
};
const [ROLLBACK, REMOVED] = [9, 10];
assert.soonNoExcept(() => state() === ROLLBACK, "it takes nothing back", 60000);
const member = rst.getReplSetConfigFromNode().members.find((m) => m.host === back.host);
assert.commandWorked(reconfig(rst, (config) => config.members = config.members.filter((m) => m._id !== member._id)));
assert.soonNoExcept(() => back.adminCommand({hello: 1}).info === "Does not have a valid replica set config" || state() === REMOVED);
assert.commandWorked(back.adminCommand({configureFailPoint: "rollbackHangAfterTransitionToRollback", mode: "off"}));
assert.soonNoExcept(() => checkLog.checkContainsOnce(back, "Rollback done"), "it did not go on", 60000);
assert.commandWorked(reconfig(rst, (config) => config.members.push(member)));
assert.soonNoExcept(() => held(back).some((d) => d._id === "theirs"), () => "it follows nobody, and is in " + state(), 60000);
assert.eq([], held(back).filter((d) => d._id === "lost"));
rst.stopSet();
