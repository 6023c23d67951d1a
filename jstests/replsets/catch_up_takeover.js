/**
 * A primary that is slow at fetching what another member has is taken over from by that one, so that the set takes writes again and
 * nothing of it is lost.
 * It fails if the set waits for its primary without end, or if the reason is not told and counted.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {catchUpTakeoverDelayMillis: 1000}});
const old = rst.getPrimary();
const others = rst.nodes.filter((node) => node.host !== old.host);
// They have the same: either is elected by the other.
assert.commandWorked(insert(old, [{_id: "shared"}], {w: 3, wtimeout: 20000}));
rst.awaitReplication();
const points = others.map((node) => configureFailPoint(node, "stopReplProducer"));
const write = (id) => assert.commandWorked(old.getDB("test").runCommand({insert: "c", documents: [{_id: id}], writeConcern: {w: 1}}));
// What they are waiting for ends with the next entry.
write("seen");
points.forEach((point) => point.wait());
write("kept");
const standing = startParallelShell(
    funWithArgs((host) => { new Mongo(host).adminCommand({replSetStepUp: 1}); }, others[0].host), old.port, true);
const status = (node) => assert.commandWorked(node.adminCommand({replSetGetStatus: 1}));
const told = () => (status(old).electionCandidateMetrics || {}).lastElectionReason;
assert.soon(() => told() === "catchupTakeover", "nobody takes over", 60000);
assert.soon(() => old.adminCommand({hello: 1}).isWritablePrimary, "it waits for ever");
const counted = assert.commandWorked(old.adminCommand({serverStatus: 1})).electionMetrics.catchUpTakeover;
assert.eq([1, 1], [counted.called, counted.successful].map(Number), tojson(counted));
points.forEach((point) => point.off());
standing();
rst.awaitReplication();
rst.nodes.forEach((node) => {
    node.setSecondaryOk();
    assert.eq(1, node.getDB("test").c.find({_id: "kept"}).itcount(), node.host);
});
rst.stopSet();
