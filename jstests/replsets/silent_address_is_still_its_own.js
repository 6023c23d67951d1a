/**
 * A member whose address is forwarded cannot be reached by it while a newer configuration comes, as one does with every election. Its address
 * is its own all the same: when it is reachable again, it is in the set.
 * It fails if the member takes itself for removed.
 *
 * @tags: [requires_own_servers]
 */
import {insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 5000}});
const primary = rst.getPrimary();
const [successor, behind] = rst.getSecondaries();
let bridge = new MongoBridge({dest: behind.host});
bridge.connectToBridge();
const [direct, forwarded] = [behind.host, bridge.host];
const place = (config) => config.members.find((member) => member.host === direct || member.host === forwarded);
assert.commandWorked(reconfig(rst, (config) => Object.assign(place(config), {votes: 0, priority: 0})));
assert.commandWorked(reconfig(rst, (config) => Object.assign(place(config), {host: forwarded})));
const ask = () => assert.commandWorked(behind.adminCommand({replSetGetStatus: 1}));
const me = () => ask().members.find((member) => member.self);
assert.soonNoExcept(() => me().name === forwarded && me().stateStr === "SECONDARY");

bridge.stop();
const term = () => Number(ask().term);
const before = term();
assert.commandWorked(rst.stepUp(successor, {awaitReplicationBeforeStepUp: false}) && successor.adminCommand({ping: 1}));
assert.soonNoExcept(() => term() > before && ask().members.some((member) => member.stateStr === "PRIMARY"));
const configTerm = () => Number(assert.commandWorked(behind.adminCommand({replSetGetConfig: 1})).config.term);
assert.soonNoExcept(() => configTerm() > before, "the configuration of the new term did not come", 60000);
assert.eq("SECONDARY", me().stateStr);

bridge = new MongoBridge({dest: direct, port: bridge.port});
bridge.connectToBridge();
const write = () => insert(successor, [{_id: ObjectId()}], {w: 3, wtimeout: 60000});
assert.commandWorked(write(), "it is not taken for a member");
rst.stopSet(undefined, false, {skipCheckDBHashes: true});
bridge.stop();
