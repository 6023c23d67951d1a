/**
 * A change stream with updateLookup shows no version of a document that may yet be rolled back.
 * It fails if a batch shows what the primary alone has.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const [primary, secondaries] = [rst.getPrimary(), rst.getSecondaries()];
const db = primary.getDB("test");
assert.commandWorked(insert(primary, [{_id: 1, n: 0}], {w: 3, wtimeout: 20000}));
const set = (n, w) => assert.commandWorked(db.runCommand(
    {update: "c", updates: [{q: {_id: 1}, u: {$set: {n: n}}}], writeConcern: {w: w}}));
const pipeline = [{$changeStream: {fullDocument: "updateLookup"}}];
const cursor = assert.commandWorked(db.runCommand({aggregate: "c", pipeline, cursor: {}})).cursor;
set(1, 3);
holdBehind(primary, secondaries, "other");
set(2, 1);
// The members come back while the batch is under way.
const release = startParallelShell(funWithArgs((hosts) => {
    sleep(2000);
    hosts.forEach((host) => assert.commandWorked(
        new Mongo(host).adminCommand({configureFailPoint: "rsSyncApplyStop", mode: "off"})));
}, secondaries.map((node) => node.host)), primary.port, true);
const begun = Date.now();
const batch = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: "c"})).cursor.nextBatch;
const took = Date.now() - begun;
assert.eq(1, batch.length, tojson(batch));
assert(batch[0].fullDocument.n === 1 || took > 1000, `${tojson(batch)} after ${took} ms`);
release();
secondaries.forEach(letGo);
rst.stopSet();
