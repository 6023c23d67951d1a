/**
 * What a member rolls back while it runs, no read of the past shows.
 * It fails if a read of level snapshot or majority on that member shows a document that was rolled back, or lacks one that was
 * deleted by what was rolled back.
 *
 * @tags: [requires_own_servers]
 */
import {elect, hold, insert, letGo} from "jstests/replsets/libs/members.js";

const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 60000, catchUpTimeoutMillis: 0}});
rst.startSet();
rst.initiate();
rst.awaitSecondaryNodes();
const [old, others] = [rst.getPrimary(), rst.getSecondaries()];
const rbid = () => assert.commandWorked(old.adminCommand({replSetGetRBID: 1})).rbid;
const before = rbid();
assert.commandWorked(insert(old, [{_id: "kept"}], {w: 3, wtimeout: 20000}));
const points = others.map(hold);
assert.commandWorked(insert(old, [{_id: "fetched"}]));
points.forEach((point) => point.wait());
assert.commandWorked(insert(old, [{_id: "lost"}]));
const alone = {delete: "c", deletes: [{q: {_id: "kept"}, limit: 1}], writeConcern: {w: 1}};
assert.commandWorked(old.getDB("test").runCommand(alone));
// The node is kept as it is, once a second; this change of the collection has its former state kept, too.
sleep(2500);
assert.commandWorked(insert(old, [{_id: "lost, too"}]));
const primary = elect(rst, others);
others.forEach(letGo);
const times = ["first", "second"].map((id) => assert.commandWorked(primary.getDB("test").runCommand(
    {insert: "c", documents: [{_id: id}], writeConcern: {w: "majority", wtimeout: 30000}})).operationTime);
old.setSecondaryOk();
const ids = (readConcern) => {
    const command = {find: "c", sort: {_id: 1}, readConcern, $readPreference: {mode: "secondary"}, maxTimeMS: 10000};
    const reply = old.getDB("test").runCommand(command);
    return reply.ok ? reply.cursor.firstBatch.map((d) => d._id).filter((id) => id !== "fetched") : reply;
};
// It closes its connections meanwhile.
assert.soonNoExcept(() => rbid() === before + 1, "there was no rollback");
let read;
assert.soonNoExcept(() => {
    read = ids({level: "snapshot", atClusterTime: times[0]});
    // As of then it may not be readable any more.
    return Array.isArray(read) || [239, 246].includes(read.code);
}, () => tojson(read));
assert(!Array.isArray(read) || bsonWoCompare(["first", "kept"], read) === 0, tojson(read));
assert.soon(() => bsonWoCompare(["first", "kept", "second"], ids({level: "majority"})) === 0);
assert.eq(["first", "kept", "second"], ids({level: "snapshot"}));
rst.stopSet();
