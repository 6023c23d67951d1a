/**
 * Routers read from a StaleConfig error what to refresh, so its fields are part of the protocol between nodes.
 * It fails if the error loses a field, a shard takes an older major version, or refuses one that differs in minor only.
 *
 * @tags: [requires_sharding]
 */
import {collectionEntry, freshCollection, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const coll = freshCollection(db, "stale_config_fields", {x: 1}, [{x: 0}], [first, second]);
const testDB = coll.getDB();
assert.commandWorked(coll.insert([{_id: 1, x: -1}, {_id: 2, x: 1}]));
coll.find().itcount();

const entry = collectionEntry(coll);
const direct = shardConnection(db, second).getDB(testDB.getName());
const ask = (version) => direct.runCommand({find: "c", shardVersion: version});
const versionOf = (v) => ({e: entry.lastmodEpoch, t: entry.timestamp, v: v});
const owned = db.getSiblingDB("config").chunks.find({uuid: entry.uuid, shard: second}).sort({lastmod: -1}).next().lastmod;

// The right version, and one that is newer or older in its minor part only.
assert.eq([2], assert.commandWorked(ask(versionOf(owned))).cursor.firstBatch.map((d) => d._id));
assert.commandWorked(ask(versionOf(Timestamp(owned.getTime(), owned.getInc() + 9))));

// An older major version.
let reply = ask(versionOf(Timestamp(owned.getTime() - 1, 0)));
assert.commandFailedWithCode(reply, 13388);
assert.eq("StaleConfig", reply.codeName);
assert.eq(coll.getFullName(), reply.ns);
assert.eq(second, reply.shardId);
assert.eq(entry.lastmodEpoch, reply.vReceived.e);
assert.eq(entry.timestamp, reply.vReceived.t);
assert.eq(Timestamp(owned.getTime() - 1, 0), reply.vReceived.v);
assert.eq(owned, reply.vWanted.v);
assert.eq(entry.lastmodEpoch, reply.vWanted.e);
assert.eq(entry.timestamp, reply.vWanted.t);

// "Unsharded", and another generation.
const none = {e: ObjectId("000000000000000000000000"), t: Timestamp(0, 0), v: Timestamp(0, 0)};
reply = ask(none);
assert.commandFailedWithCode(reply, 13388);
assert.eq(none, reply.vReceived);
reply = ask({e: ObjectId("0123456789abcdef01234567"), t: Timestamp(1, 1), v: owned});
assert.commandFailedWithCode(reply, 13388);

// "Do not check" is answered, with everything the shard holds.
const ignored = {e: ObjectId("00000000ffffffffffffffff"), t: Timestamp(4294967295, 4294967295), v: Timestamp(0, 0)};
assert.commandWorked(ask(ignored));
assert.commandWorked(direct.runCommand({find: "c"}));

// In writes the error stands in the reply's list, with the same fields.
reply = direct.runCommand({
    insert: "c", documents: [{_id: 9, x: 9}], shardVersion: versionOf(Timestamp(owned.getTime() - 1, 0)),
});
const error = reply.ok ? reply.writeErrors[0] : reply;
assert.eq(13388, error.code);
assert.eq(coll.getFullName(), (error.errInfo || error).ns);
assert.eq(0, coll.find({x: 9}).itcount());

// A malformed version is no version.
assert.commandFailed(ask({v: 1}));
assert.commandFailed(ask("1|0"));
assert.commandWorked(testDB.dropDatabase());
