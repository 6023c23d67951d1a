/**
 * shardCollection refuses keys and collections that could not be divided, each for its own reason.
 * It fails if a bad key is accepted, a collection is left half sharded, or sharding twice differently is no error.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const testDB = freshDatabase(db, "shard_collection_errors", shardNames(db)[0]);
function refused(name, fields, codes) {
    const command = Object.assign({shardCollection: `${testDB.getName()}.${name}`}, fields);
    const reply = db.adminCommand(command);
    if (codes) {
        assert.commandFailedWithCode(reply, codes, tojson(command));
    } else {
        assert.commandFailed(reply, tojson(command));
    }
}

// Keys.
refused("c", {}, 40414);
refused("c", {key: {}}, [2, 72]);
refused("c", {key: "x"}, 14);
refused("c", {key: {x: -1}});
refused("c", {key: {x: "text"}});
refused("c", {key: {x: 1, y: -1}});
refused("c", {key: {"x.": 1}});
refused("c", {key: {".x": 1}});
refused("c", {key: {$x: 1}});
refused("c", {key: {x: "2d"}});
refused("c", {key: {x: "hashed", y: "hashed"}});
refused("c", {key: {x: "hashed"}, unique: true}, 72);
refused("c", {key: {x: 1}, collation: {locale: "fr"}}, 2);
refused("c", {key: {x: 1}, unknownOption: 1}, 40415);
assert.eq(null, collectionEntry(testDB.c));

// Indexes: one that serves the key must be there if the collection holds documents.
assert.commandWorked(testDB.filled.insert({x: 1, y: [1, 2]}));
refused("filled", {key: {x: 1}}, 72);
assert.commandWorked(testDB.filled.createIndex({z: 1, x: 1}));
refused("filled", {key: {x: 1}}, 72);
assert.commandWorked(testDB.filled.createIndex({x: 1}, {sparse: true, name: "sparse"}));
refused("filled", {key: {x: 1}}, 72);
assert.commandWorked(testDB.filled.createIndex({x: 1}, {partialFilterExpression: {x: {$gt: 0}}, name: "partial"}));
refused("filled", {key: {x: 1}}, 72);
assert.commandWorked(testDB.filled.createIndex({y: 1}));
refused("filled", {key: {y: 1}}, 72);
assert.commandWorked(testDB.filled.createIndex({x: 1, w: 1}));
assert.commandWorked(db.adminCommand({shardCollection: testDB.filled.getFullName(), key: {x: 1}}));

// A unique index must begin with the key.
assert.commandWorked(testDB.unique.createIndex({u: 1}, {unique: true}));
refused("unique", {key: {x: 1}}, 72);
assert.commandWorked(db.adminCommand({shardCollection: testDB.unique.getFullName(), key: {u: 1}}));

// Kinds of collections.
assert.commandWorked(testDB.createCollection("capped", {capped: true, size: 4096}));
refused("capped", {key: {x: 1}}, 72);
assert.commandWorked(testDB.createView("view", "c", []));
refused("view", {key: {x: 1}}, 166);
refused("system.js", {key: {x: 1}}, 20);
for (const ns of ["admin.c", "local.c", "config.c"]) {
    assert.commandFailedWithCode(db.adminCommand({shardCollection: ns, key: {x: 1}}), [13, 20], ns);
}
for (const ns of ["", "nodot", ".c", "db."]) {
    assert.commandFailedWithCode(db.adminCommand({shardCollection: ns, key: {x: 1}}), 73, ns);
}
assert.commandFailedWithCode(testDB.runCommand({shardCollection: testDB.c.getFullName(), key: {x: 1}}), 13);

// Again: the same is no change, anything else is an error.
assert.commandWorked(db.adminCommand({shardCollection: testDB.twice.getFullName(), key: {x: 1}}));
const entry = collectionEntry(testDB.twice);
const reply = assert.commandWorked(db.adminCommand({shardCollection: testDB.twice.getFullName(), key: {x: 1}}));
assert.eq(testDB.twice.getFullName(), reply.collectionsharded);
assert.eq(entry, collectionEntry(testDB.twice));
refused("twice", {key: {y: 1}}, 23);
refused("twice", {key: {x: 1}, unique: true}, 23);
refused("twice", {key: {x: "hashed"}}, 23);
assert.eq(entry, collectionEntry(testDB.twice));
assert.commandWorked(testDB.dropDatabase());
