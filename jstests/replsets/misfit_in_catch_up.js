/**
 * A member on which something was changed behind its set's back wins an election, and finds while it catches up that an entry of the others
 * does not fit what it has. It leads nobody, but copies everything anew.
 * It fails if such a member takes writes, or if the others lose to it what they have.
 *
 * @tags: [requires_own_servers]
 */
import {held, holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 5000}});
const primary = rst.getPrimary();
const id = rst.getNodeId(rst.getSecondary());
const third = rst.getSecondaries().find((node) => rst.getNodeId(node) !== id);
assert.commandWorked(insert(primary, [{_id: "updated"}], {w: 3, wtimeout: 60000}));
holdBehind(primary, [third]);
rst.awaitReplication(undefined, undefined, [rst.nodes[id]]);
rst.stop(id, undefined, {skipValidation: true}, {forRestart: true});
const alone = MongoRunner.runMongod({port: rst.getPort(id), dbpath: rst.getDbPath(id), noCleanData: true});
assert.commandWorked(alone.getDB("test").c.remove({_id: "updated"}));
MongoRunner.stopMongod(alone, undefined, {skipValidation: true});
const changed = rst.start(id, {setParameter: {"failpoint.rsSyncApplyStop": tojson({mode: "alwaysOn"})}}, true);
rst.awaitSecondaryNodes(undefined, [changed]);
const update = {update: "c", updates: [{q: {_id: "updated"}, u: {$set: {n: 1}}}], writeConcern: {w: 1}};
assert.commandWorked(primary.getDB("test").runCommand(update));

const stand = (host) => { new Mongo(host).adminCommand({replSetStepUp: 1}); };
const standing = startParallelShell(funWithArgs(stand, changed.host), primary.port, true);
const [PRIMARY] = [1];
assert.soonNoExcept(() => changed.adminCommand({replSetGetStatus: 1}).myState === PRIMARY, "it is not elected", 60000);
letGo(changed);
letGo(third);
const copies = () => Number(assert.commandWorked(changed.adminCommand({serverStatus: 1})).metrics.repl.initialSync.completed);
assert.soonNoExcept(() => copies() === 1, "it copies nothing", 60000);
standing();
rst.awaitSecondaryNodes();
rst.awaitReplication();
for (const node of rst.nodes) {
    assert.docEq([{_id: "updated", n: 1}], held(node).filter((d) => d._id === "updated"), node.host);
}
rst.checkReplicatedDataHashes();
rst.stopSet();
