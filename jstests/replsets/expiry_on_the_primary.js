/**
 * Documents expire on the primary, and on secondaries by its deletes only. It fails if a secondary deletes by itself, or keeps
 * what is gone.
 *
 * @tags: [requires_own_servers]
 */
import {held, hold, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2, {more: {nodeOptions: {setParameter: {ttlMonitorSleepSecs: 1}}}});
const [primary, secondary] = [rst.getPrimary(), rst.getSecondary()];
const c = primary.getDB("test").c;
assert.commandWorked(c.createIndex({at: 1}, {expireAfterSeconds: 0}));
// Nothing expires on the primary before the secondary has what is due, and is held back.
const expires = (enabled) => assert.commandWorked(primary.adminCommand({setParameter: 1, ttlMonitorEnabled: enabled}));
expires(false);
const documents = [{_id: 1, at: new Date(Date.now() - 1000)}, {_id: 2, at: new Date(Date.now() + 3600000)}];
assert.commandWorked(c.insert(documents, {writeConcern: {w: 2, wtimeout: 20000}}));
hold(secondary);
expires(true);
assert.soon(() => c.find().itcount() === 1);
sleep(1200);
assert.eq([1, 2], held(secondary).map((d) => d._id));
letGo(secondary);
assert.soon(() => held(secondary).length === 1);
assert.eq(1, primary.getDB("local").oplog.rs.find({op: "d", ns: "test.c"}).itcount());
rst.stopSet();
