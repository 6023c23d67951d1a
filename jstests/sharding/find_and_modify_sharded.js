/**
 * findAndModify changes exactly one document, also when the filter does not say on which shard it lies.
 * It fails if more than one shard changes a document, a sort is not honoured over shards, or lastErrorObject differs.
 *
 * @tags: [requires_sharding]
 */
import {freshCollection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "find_and_modify_sharded", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
for (let x = -5; x < 5; x++) {
    assert.commandWorked(coll.insert({_id: x, x: x, v: 0, order: -x}));
}
function modify(fields) {
    return testDB.runCommand(Object.assign({findAndModify: "c"}, fields));
}

let reply = assert.commandWorked(modify({query: {x: 3}, update: {$inc: {v: 1}}}));
assert.docEq({_id: 3, x: 3, v: 0, order: -3}, reply.value);
assert.docEq({n: 1, updatedExisting: true}, reply.lastErrorObject);
reply = assert.commandWorked(modify({query: {x: 3}, update: {$inc: {v: 1}}, new: true, fields: {v: 1}}));
assert.docEq({_id: 3, v: 2}, reply.value);
reply = assert.commandWorked(modify({query: {x: 3}, remove: true}));
assert.eq(2, reply.value.v);
assert.docEq({n: 1}, reply.lastErrorObject);
reply = assert.commandWorked(modify({query: {x: 3}, update: {$inc: {v: 1}}}));
assert.eq(null, reply.value);
assert.docEq({n: 0, updatedExisting: false}, reply.lastErrorObject);

// Without the key: one document, the first of the order over all shards.
reply = assert.commandWorked(modify({query: {v: 0}, sort: {order: 1}, update: {$set: {v: 9}}}));
assert.eq(4, reply.value.x);
reply = assert.commandWorked(modify({query: {v: 0}, sort: {order: -1}, update: {$set: {v: 9}}, new: true}));
assert.eq(-5, reply.value.x);
assert.eq(2, coll.find({v: 9}).itcount());
reply = assert.commandWorked(modify({query: {_id: 1}, update: {$set: {v: 7}}}));
assert.eq(1, reply.value.x);
reply = assert.commandWorked(modify({query: {order: {$lt: -1}, v: 0}, remove: true}));
assert.eq(2, reply.value.x);
assert.eq(8, coll.find().itcount());
reply = assert.commandWorked(modify({query: {nothing: true}, update: {$set: {v: 7}}}));
assert.eq(null, reply.value);

// Other forms.
reply = assert.commandWorked(modify({query: {x: 1}, update: [{$set: {v: {$add: ["$v", "$x"]}}}], new: true}));
assert.eq(8, reply.value.v);
reply = assert.commandWorked(modify({query: {x: 1}, update: {x: 1, only: true}, new: true}));
assert.docEq({_id: 1, x: 1, only: true}, reply.value);

// Refused requests.
assert.commandFailedWithCode(modify({query: {x: 1}}), 9);
assert.commandFailedWithCode(modify({query: {x: 1}, remove: true, update: {$set: {a: 1}}}), 9);
assert.commandFailedWithCode(modify({query: {x: 1}, remove: true, new: true}), 9);
assert.commandFailedWithCode(modify({query: {x: 1}, remove: true, upsert: true}), 9);
assert.commandFailedWithCode(modify({query: {x: 0}, update: {$inc: {order: "x"}}}), 14);

// The old spelling of the name.
assert.commandWorked(testDB.runCommand({findandmodify: "c", query: {x: 0}, update: {$set: {old: 1}}}));
assert.eq(1, coll.findOne({x: 0}).old);
assert.commandWorked(testDB.dropDatabase());
