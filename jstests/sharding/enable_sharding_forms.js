/**
 * enableSharding makes a database exist, on a primary of choice; it is no longer needed, but scripts still send it.
 * It fails if the primary is not the one asked for, another answer is given the second time, or bad names are accepted.
 *
 * @tags: [requires_sharding]
 */
import {shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const config = db.getSiblingDB("config");
const name = "enable_sharding_forms";
const testDB = db.getSiblingDB(name);
assert.commandWorked(testDB.dropDatabase());
const entry = () => config.databases.findOne({_id: name});

assert.commandWorked(db.adminCommand({enableSharding: name}));
assert.contains(entry().primary, [first, second]);
assert.sameMembers(["uuid", "timestamp", "lastMod"], Object.keys(entry().version));
assert.eq(1, entry().version.lastMod);
const made = entry();
assert.commandWorked(db.adminCommand({enableSharding: name}));
assert.commandWorked(db.adminCommand({enableSharding: name, primaryShard: made.primary}));
assert.commandWorked(db.adminCommand({enablesharding: name}));
assert.eq(made, entry());

// There is a primary already, and it is another one.
const other = made.primary === first ? second : first;
assert.commandFailedWithCode(db.adminCommand({enableSharding: name, primaryShard: other}), 48);
assert.eq(made, entry());
assert.commandWorked(testDB.dropDatabase());
assert.commandWorked(db.adminCommand({enableSharding: name, primaryShard: other}));
assert.eq(other, entry().primary);

// An empty database exists only for the config server; the first collection makes it real.
assert.eq([], testDB.getCollectionNames());
assert.commandWorked(testDB.c.insert({_id: 1}));
assert(db.adminCommand({listDatabases: 1}).databases.some((d) => d.name === name));

// Bad requests.
for (const bad of ["", "a.b", "a b", "a$b", "a/b", "a\\b", "x".repeat(64)]) {
    assert.commandFailedWithCode(db.adminCommand({enableSharding: bad}), 73, tojson(bad));
}
assert.commandFailed(db.adminCommand({enableSharding: 5}));
assert.commandFailedWithCode(db.adminCommand({enableSharding: "enable_sharding_no", primaryShard: "no such"}), 70);
assert.eq(null, config.databases.findOne({_id: "enable_sharding_no"}));
for (const own of ["admin", "local"]) {
    assert.commandFailedWithCode(db.adminCommand({enableSharding: own}), 72, own);
}
assert.commandFailedWithCode(testDB.runCommand({enableSharding: name}), 13);
assert.commandWorked(testDB.dropDatabase());
