/**
 * While a majority lags, reads of level majority and snapshot show what a majority has, and do not wait.
 * It fails if they wait, show what the primary alone has, lose what is committed, show two moments in one read, or miss what a
 * session knows to be committed; or if one of level majority is refused since another collection that it reads was made meanwhile.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const [primary, secondaries] = [rst.getPrimary(), rst.getSecondaries()];
const db = primary.getDB("test");
const majority = {level: "majority"};
assert.commandWorked(insert(primary, [{_id: 1, n: 1}, {_id: 2, n: 1}, {_id: 3, n: 1}], {w: 3, wtimeout: 20000}));
assert.commandWorked(db.createView("v", "c", [{$match: {n: 1}}]));
assert.commandWorked(db.runCommand({create: "joined", writeConcern: {w: 3}}));
assert.commandWorked(db.runCommand({insert: "joined", documents: [{_id: 1}], writeConcern: {w: 3}}));
// Reads of the past begin where the node was last kept as it was, once a second: a view that is younger waits.
sleep(2200);
holdBehind(primary, secondaries, "other");

const write = (command) => assert.commandWorked(db.runCommand(Object.assign(command, {writeConcern: {w: 1}})));
write({insert: "c", documents: [{_id: 4, n: 1}]});
write({update: "c", updates: [{q: {_id: 1}, u: {$set: {n: 2}}}]});
write({delete: "c", deletes: [{q: {_id: 2}, limit: 1}]});
write({insert: "joined", documents: [{_id: 2}]});
write({insert: "made", documents: [{_id: 1}]});

const committed = [{_id: 1, n: 1}, {_id: 2, n: 1}, {_id: 3, n: 1}];
const here = [{_id: 1, n: 2}, {_id: 3, n: 1}, {_id: 4, n: 1}];
const limit = {maxTimeMS: 8000};
const run = (command) => assert.commandWorked(db.runCommand(Object.assign(command, limit)));
const batch = (command) => run(command).cursor.firstBatch;
for (const level of ["majority", "snapshot"]) {
    const readConcern = {level: level};
    assert.eq(committed, batch({find: "c", sort: {_id: 1}, readConcern}), level);
    assert.eq([{_id: 2, n: 1}], batch({find: "c", filter: {_id: 2}, readConcern}), level);
    assert.eq([], batch({find: "c", filter: {_id: 4}, readConcern}), level);
    assert.eq([1], run({distinct: "c", key: "n", readConcern}).values, level);
    const lookup = {$lookup: {from: "joined", pipeline: [], as: "all"}};
    const pipeline = [{$match: {_id: 1}}, lookup];
    assert.eq([{_id: 1, n: 1, all: [{_id: 1}]}], batch({aggregate: "c", pipeline, cursor: {}, readConcern}), level);
}
const reply = run({find: "c", readConcern: majority});
assert(!("atClusterTime" in reply.cursor), tojson(reply));
assert.eq(3, run({count: "c", readConcern: majority}).n);
assert.eq([{_id: 1}, {_id: 2}, {_id: 3}], batch({find: "v", projection: {_id: 1}, sort: {_id: 1}, readConcern: majority}));
assert.eq(here, batch({find: "c", sort: {_id: 1}}));

// A pipeline with a collection that was made since waits, wherever it is named.
const made = {$unionWith: "made"};
const through = [made, {$lookup: {from: "joined", pipeline: [made], as: "all"}}, {$facet: {all: [{$lookup: {from: "made", pipeline: [], as: "all"}}]}},
    {$lookup: {from: "made", pipeline: [{$match: {$expr: {$eq: ["$$one", 1]}}}], as: "all"}}];
const waiting = (stage) => ({aggregate: "c", pipeline: [stage], cursor: {}, let: {one: 1}, readConcern: majority});
through.forEach((stage) => assert.commandFailedWithCode(db.runCommand(Object.assign(waiting(stage), {maxTimeMS: 400})), 50, tojson(stage)));

// Later batches are of the same moment.
const first = run({find: "c", sort: {_id: 1}, batchSize: 1, readConcern: majority}).cursor;
assert.eq([committed[0]], first.firstBatch);
write({delete: "c", deletes: [{q: {_id: 3}, limit: 1}]});
assert.eq(committed.slice(1), db.runCommand({getMore: first.id, collection: "c"}).cursor.nextBatch);

// Who has seen what is not committed waits for it.
const seen = assert.commandWorked(db.runCommand({find: "c"})).operationTime;
const later = {level: "majority", afterClusterTime: seen};
assert.commandFailedWithCode(db.runCommand({find: "c", readConcern: later, maxTimeMS: 400}), 50);

// So does a read that joins a collection which a majority does not have yet.
const younger = [{$match: {_id: 1}}, {$lookup: {from: "made", pipeline: [], as: "all"}}];
const joining = {aggregate: "c", pipeline: younger, cursor: {}, readConcern: majority};
assert.commandFailedWithCode(db.runCommand(Object.assign({}, joining, {maxTimeMS: 400})), 50);

secondaries.forEach(letGo);
assert.eq([{_id: 1, n: 2, all: [{_id: 1}]}], run(joining).cursor.firstBatch);
assert.eq([here[0], here[2]], run({find: "c", sort: {_id: 1}, readConcern: later}).cursor.firstBatch);
assert.eq([here[0], here[2]], run({find: "c", sort: {_id: 1}, readConcern: majority}).cursor.firstBatch);
through.forEach((stage) => run(waiting(stage)));
rst.stopSet();
