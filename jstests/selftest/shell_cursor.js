/**
 * Cursors: every modifier reaches the server, batches are fetched as they run out, and errors carry their code. A
 * modifier that was dropped on its way to the find command would fail here.
 */
(function() {
"use strict";

const coll = db.getSiblingDB(jsTestName()).shell_cursor;
coll.drop();
const all = [];
for (let i = 0; i < 50; i++) all.push({_id: i, a: i % 5, text: i % 2 ? "b" : "B"});
assert.commandWorked(coll.insert(all));
assert.commandWorked(coll.createIndex({a: 1}));
const ids = cursor => cursor.toArray().map(doc => doc._id);

// Counting and fetching.
assert.eq(50, coll.find().itcount());
assert.eq(50, coll.find().count());
assert.eq(10, coll.find({a: 1}).count());
assert.eq(50, coll.find().limit(7).count());
assert.eq(7, coll.find().limit(7).size());
assert.eq(7, coll.find().limit(7).count(true));
assert.eq(3, coll.find({a: 1}).limit(3).skip(2).itcount());
assert.eq(10, coll.count({a: 2}));
assert.eq(4, coll.count({a: 2}, {limit: 4}));
assert.eq(6, coll.count({a: 2}, {skip: 4}));
assert.eq([0, 1, 2, 3, 4], coll.distinct("a").sort());
assert.eq([3], coll.distinct("a", {_id: 3}));

// Order and limits.
assert.eq([49, 48, 47], ids(coll.find().sort({_id: -1}).limit(3)));
assert.eq([12, 13], ids(coll.find().sort({_id: 1}).skip(12).limit(2)));
assert.eq([0, 1, 2], ids(coll.find().sort({_id: 1}).limit(-3)));
assert.eq([1, 6], ids(coll.find({a: 1}, {}, 2).sort({_id: 1})));

// Batches.
const batched = coll.find().sort({_id: 1}).batchSize(20);
assert.eq(20, batched.objsLeftInBatch());
assert.neq(0, Number(batched.getId()));
for (let i = 0; i < 20; i++) assert.eq(i, batched.next()._id);
assert.eq(0, batched.objsLeftInBatch());
assert(!batched.isExhausted());
assert(batched.hasNext());
assert.eq(20, batched.objsLeftInBatch());
assert.eq(30, batched.itcount());
assert(batched.isExhausted());
assert(batched.isClosed());
assert.throws(() => batched.next());
const single = coll.find().batchSize(-5);
assert.eq(5, single.itcount());
const empty = coll.find().batchSize(0);
assert.eq(0, empty.objsLeftInBatch());
assert.eq(50, empty.itcount());
const killed = coll.find().batchSize(2);
killed.next();
const id = killed.getId();
killed.close();
assert.eq(1, killed.itcount());
assert.commandFailedWithCode(coll.getDB().runCommand({getMore: id, collection: coll.getName()}), ErrorCodes.CursorNotFound);
const late = coll.find().batchSize(2);
late.next();
assert.throws(() => late.sort({a: 1}));

// The ways to go through documents.
assert.eq(4, coll.find().sort({_id: 1})[4]._id);
assert.eq(undefined, coll.find({_id: 1})[4]);
assert.eq(50, coll.find().length());
assert.eq([0, 2, 4], coll.find({_id: {$lt: 3}}).sort({_id: 1}).map(doc => doc._id * 2));
let seen = [];
coll.find({_id: {$lt: 3}}).sort({_id: 1}).forEach(doc => seen.push(doc._id));
assert.eq([0, 1, 2], seen);
seen = [];
for (const doc of coll.find({_id: {$lt: 2}}).sort({_id: 1})) seen.push(doc._id);
assert.eq([0, 1], seen);
assert.eq(2, coll.find({_id: {$lt: 2}}).toArray().length);
assert.eq(0, coll.findOne({_id: 0})._id);
assert.eq(null, coll.findOne({_id: -1}));
assert.eq({_id: 3}, coll.findOne({_id: 3}, {_id: 1}));
assert.eq({_id: 3, a: 3}, coll.find({_id: 3}, {a: 1}).next());
assert.eq({_id: 3, a: 3}, coll.find({_id: 3}).projection({a: 1}).next());
assert.eq({_id: 3, a: 3}, coll.find({_id: 3}, ["a"]).next());

// Modifiers whose effect shows in the documents or in the plan.
assert.eq([{a: 1}], coll.find({a: 1}).hint({a: 1}).returnKey().limit(1).toArray());
assert.neq(undefined, coll.find({_id: 1}).showRecordId().next().$recordId);
assert.eq(20, coll.find().min({a: 3}).hint({a: 1}).itcount());
assert.eq(30, coll.find().max({a: 3}).hint({a: 1}).itcount());
assert.throwsWithCode(() => coll.find().hint({missing: 1}).itcount(), ErrorCodes.BadValue);
assert.eq(50, coll.find().comment("words").maxTimeMS(60000).noCursorTimeout().allowDiskUse().readConcern("local").itcount());

// What was asked for is in the command.
const command = coll.find({a: 1}, {a: 1}).sort({a: 1}).skip(1).limit(2).batchSize(3).hint({a: 1}).comment("c").maxTimeMS(9)
    .collation({locale: "en"}).allowDiskUse().noCursorTimeout().allowPartialResults().returnKey().showRecordId()
    .min({a: 0}).max({a: 9}).readConcern("majority").tailable()._convertToCommand();
assert.docEq({
    find: coll.getName(), filter: {a: 1}, projection: {a: 1}, sort: {a: 1}, skip: 1, limit: 2, batchSize: 3, hint: {a: 1},
    comment: "c", maxTimeMS: 9, collation: {locale: "en"}, allowDiskUse: true, noCursorTimeout: true, allowPartialResults: true,
    returnKey: true, showRecordId: true, min: {a: 0}, max: {a: 9}, readConcern: {level: "majority"}, tailable: true, awaitData: true,
}, command);
assert.eq({find: coll.getName(), filter: {}, limit: 4, singleBatch: true}, coll.find().limit(-4)._convertToCommand());
assert.throws(() => coll.find().readPref("nowhere"));

// Cursors of commands.
const aggregated = coll.aggregate([{$sort: {_id: 1}}], {cursor: {batchSize: 3}});
assert(aggregated instanceof DBCommandCursor);
assert.eq(3, aggregated.objsLeftInBatch());
assert.eq(50, aggregated.itcount());
assert.eq(2, coll.aggregate({$match: {a: 1}}, {$limit: 2}).itcount());
assert.eq(5, coll.aggregate([{$group: {_id: "$a"}}]).toArray().length);
const reply = assert.commandWorked(coll.runCommand("find", {batchSize: 3}));
assert.eq(50, new DBCommandCursor(coll.getDB(), reply).itcount());
const direct = new DBCommandCursor(db.getMongo(), assert.commandWorked(coll.runCommand("find", {batchSize: 3})), 10);
assert.eq(50, direct.itcount());
assert.throws(() => new DBCommandCursor(db, {ok: 0, code: 1, errmsg: "no"}));

// Errors carry the server's code.
assert.throwsWithCode(() => coll.find({$nosuch: 1}).itcount(), ErrorCodes.BadValue);
assert.throwsWithCode(() => coll.findOne({$nosuch: 1}), ErrorCodes.BadValue);
assert.throwsWithCode(() => coll.aggregate([{$nosuch: 1}]), 40324);
assert.throwsWithCode(() => coll.count({$nosuch: 1}), ErrorCodes.BadValue);
const failed = assert.throws(() => coll.aggregate([{$nosuch: 1}]));
assert.includes(failed.message, "aggregate failed");

// The cursor of a tail stays open over empty batches and finds what comes later; the replies here are made up.
const batches = [[], [{_id: 2}]];
const commands = [];
const source = {
    getName: () => "d",
    getMongo: () => db.getMongo(),
    runCommand(command) {
        commands.push(command);
        return {ok: 1, cursor: {id: NumberLong(7), ns: "d.c", nextBatch: batches.shift()}};
    },
};
const tail = new DBCommandCursor(source, {ok: 1, cursor: {id: NumberLong(7), ns: "d.c", firstBatch: [{_id: 1}]}}, 5, 100);
assert.eq({_id: 1}, tail.next());
assert(!tail.hasNext());
assert(!tail.isExhausted());
assert(!tail.isClosed());
assert(tail.hasNext());
assert.eq({_id: 2}, tail.next());
assert.eq([{getMore: NumberLong(7), collection: "c", batchSize: 5, maxTimeMS: 100}], [commands[1]]);
tail.close();
assert.eq({killCursors: "c", cursors: [NumberLong(7)]}, commands[2]);
assert(tail.isExhausted());

// Printing a cursor shows twenty documents.
const printed = print.captureAllOutput(() => coll.find().sort({_id: 1}).shellPrint());
assert.eq(21, printed.output.length);
assert.includes(printed.output[0], '{ "_id" : 0, "a" : 0');
})();
