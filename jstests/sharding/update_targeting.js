/**
 * An update goes to the owner of the key it names; without the key, one document is found somewhere or all are changed.
 * It fails if an update of one document changes one on each shard, or a multi-update misses a shard.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "update_targeting", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -5; x < 5; x++) {
    assert.commandWorked(coll.insert({_id: x + 100, x: x, v: 0}));
}
function update(updates, more) {
    return testDB.runCommand(Object.assign({update: "c", updates: updates}, more));
}

// By key.
let reply = assert.commandWorked(update([{q: {x: 3}, u: {$inc: {v: 1}}}, {q: {x: -3}, u: {$inc: {v: 1}}}]));
assert.eq([2, 2], [reply.n, reply.nModified]);
assert.eq(2, coll.find({v: 1}).itcount());

// All shards.
reply = assert.commandWorked(update([{q: {}, u: {$set: {all: true}}, multi: true}]));
assert.eq([10, 10], [reply.n, reply.nModified]);
reply = assert.commandWorked(update([{q: {v: 0}, u: {$set: {all: true}}, multi: true}]));
assert.eq([8, 0], [reply.n, reply.nModified]);

// One document without its key: exactly one, by _id or by any filter.
reply = assert.commandWorked(update([{q: {_id: 104}, u: {$set: {byId: 1}}}]));
assert.eq([1, 1], [reply.n, reply.nModified]);
reply = assert.commandWorked(update([{q: {v: 0}, u: {$set: {once: 1}}}]));
assert.eq([1, 1], [reply.n, reply.nModified]);
assert.eq(1, coll.find({once: 1}).itcount());
reply = assert.commandWorked(update([{q: {v: 12345}, u: {$set: {never: 1}}}]));
assert.eq([0, 0], [reply.n, reply.nModified]);
reply = assert.commandWorked(update([{q: {x: {$in: [-1, 1]}}, u: {$set: {either: 1}}}]));
assert.eq(1, coll.find({either: 1}).itcount());

// A replacement keeps the key it was found by.
reply = assert.commandWorked(update([{q: {x: 4}, u: {x: 4, replaced: true}}]));
assert.eq(1, reply.nModified);
assert.docEq({_id: 104, x: 4, replaced: true}, coll.findOne({x: 4}));

// A pipeline, filters of arrays, and a hint are handed on.
assert.commandWorked(update([{q: {x: 2}, u: [{$set: {twice: {$multiply: ["$x", 2]}}}]}]));
assert.eq(4, coll.findOne({x: 2}).twice);
assert.commandWorked(coll.update({x: 2}, {$set: {list: [1, 5, 9]}}));
assert.commandWorked(update([{q: {x: 2}, u: {$set: {"list.$[big]": 0}}, arrayFilters: [{big: {$gt: 4}}]}]));
assert.eq([1, 0, 0], coll.findOne({x: 2}).list);
assert.commandFailedWithCode(update([{q: {x: 2}, u: {$set: {a: 1}}, hint: {absent: 1}}]), 2);

// Errors keep the index of their statement; ordered stops, unordered goes on.
const statements = [
    {q: {x: -1}, u: {$inc: {v: 1}}},
    {q: {x: 1}, u: {$inc: {list: "one"}}},
    {q: {x: 1}, u: {$inc: {v: 1}}},
    {q: {x: -2}, u: {$push: {v: 1}}},
];
reply = update(statements, {ordered: true});
assert.eq([1], reply.writeErrors.map((e) => e.index));
assert.eq(14, reply.writeErrors[0].code);
assert.eq(1, reply.n);
reply = update(statements, {ordered: false});
assert.eq([1, 3], reply.writeErrors.map((e) => e.index));
assert.eq([14, 2], reply.writeErrors.map((e) => e.code));
assert.eq(2, reply.n);
assert.commandFailedWithCode(update([]), 16);

// A statement that several shards refuse has one error: theirs, or one which says what each of them said.
assert.commandWorked(coll.update({x: -1}, {$set: {list: [1]}}));
reply = update([{q: {list: {$exists: true}}, u: {$inc: {list: 1}}, multi: true}], {ordered: false});
assert.eq([0], reply.writeErrors.map((e) => e.index), tojson(reply));
assert.eq(14, reply.writeErrors[0].code);
assert.commandWorked(coll.update({x: -1}, {$set: {list: NumberLong("9223372036854775807")}}));
reply = update([{q: {list: {$exists: true}}, u: {$inc: {list: NumberLong(1)}}, multi: true}], {ordered: false});
assert.eq([0], reply.writeErrors.map((e) => e.index), tojson(reply));
assert.eq(65, reply.writeErrors[0].code, tojson(reply));
assert(/^multiple errors for op : .* :: and :: /.test(reply.writeErrors[0].errmsg), tojson(reply));
assert.commandWorked(testDB.dropDatabase());
