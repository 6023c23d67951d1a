/**
 * $out replaces an unsharded collection where moveCollection has placed it: on that shard, with its indexes and options, known to the catalog.
 * It fails if the result lands on the database's primary, the catalog names another collection, or a failed $out changes or leaves something.
 *
 * @tags: [requires_own_servers]
 */
import {heldBy, ownCluster} from "jstests/sharding/libs/cluster.js";

const {st, first, second, admin, config, testDB} = ownCluster("d");
assert.commandWorked(testDB.createCollection("target", {validator: {x: {$exists: true}}, validationAction: "error"}));
assert.commandWorked(testDB.target.insert({_id: "old", x: 0}));
assert.commandWorked(testDB.target.createIndex({u: 1}, {unique: true, sparse: true}));
assert.commandWorked(admin.runCommand({moveCollection: "d.target", toShard: second}));
const many = Array.from({length: 2500}, (_, i) => ({_id: i, x: i}));
assert.commandWorked(testDB.plain.insert(many));
assert.commandWorked(admin.runCommand({shardCollection: "d.sharded", key: {_id: "hashed"}}));
assert.commandWorked(testDB.sharded.insert(many));

const entry = () => config.collections.findOne({_id: "d.target"});
const outputs = () => [st.rs0, st.rs1].flatMap(
    (rs) => rs.getPrimary().getDB("d").getCollectionNames().filter((name) => name.startsWith("tmp.agg_out")));
for (const [source, n] of [["plain", 2500], ["sharded", 1200], ["plain", 0]]) {
    const before = entry();
    const pipeline = [{$match: {x: {$lt: n}}}, {$out: "target"}];
    assert.commandWorked(testDB.runCommand({aggregate: source, pipeline, cursor: {}}));
    assert.eq([0, n], [heldBy(testDB.target, first), heldBy(testDB.target, second)]);
    assert.eq(many.slice(0, n).map((d) => d._id), testDB.target.find().sort({_id: 1}).toArray().map((d) => d._id));
    const after = entry();
    assert(after.unsplittable, tojson(after));
    assert.neq(before.uuid, after.uuid);
    assert.eq(["_id_", "u_1"], testDB.target.getIndexes().map((index) => index.name).sort());
    assert.eq({x: {$exists: true}}, testDB.getCollectionInfos({name: "target"})[0].options.validator);
    assert.eq([], outputs());
}

// What fails changes nothing.
assert.commandWorked(testDB.target.insert({_id: "kept", x: 1}));
const before = entry();
for (const [stage, code] of [
         [{$set: {u: 1}}, ErrorCodes.DuplicateKey], [{$unset: "x"}, ErrorCodes.DocumentValidationFailure],
         [{$set: {y: {$divide: ["$x", 0]}}}, 2],
]) {
    assert.commandFailedWithCode(testDB.runCommand({aggregate: "plain", pipeline: [stage, {$out: "target"}], cursor: {}}), code);
    assert.eq([], outputs());
}
assert.commandWorked(testDB.runCommand(
    {aggregate: "plain", pipeline: [{$limit: 1}, {$unset: "x"}, {$out: "other"}], cursor: {}, bypassDocumentValidation: true}));
assert.eq(before, entry());
assert.eq([{_id: "kept", x: 1}], testDB.target.find().toArray());
assert.eq([], admin.getSiblingDB("d").runCommand({checkMetadataConsistency: 1}).cursor.firstBatch);

// A collation of the target's own stays.
const collation = {locale: "en", strength: 2};
assert.commandWorked(testDB.createCollection("collated", {collation}));
assert.commandWorked(testDB.collated.createIndex({s: 1}));
assert.commandWorked(admin.runCommand({moveCollection: "d.collated", toShard: second}));
assert.commandWorked(testDB.runCommand(
    {aggregate: "plain", pipeline: [{$match: {_id: 7}}, {$project: {s: {$literal: "A"}}}, {$out: "collated"}], cursor: {}}));
assert.eq([0, 1], [heldBy(testDB.collated, first), heldBy(testDB.collated, second)]);
assert.eq([{_id: 7, s: "A"}], testDB.collated.find({s: "a"}).toArray());
const collations = [testDB.getCollectionInfos({name: "collated"})[0].options].concat(testDB.collated.getIndexes()).map((d) => d.collation.strength);
assert.eq([2, 2, 2], collations);
assert.eq([], admin.getSiblingDB("d").runCommand({checkMetadataConsistency: 1}).cursor.firstBatch);

// A write concern that was not met is said.
const unmet = testDB.runCommand(
    {aggregate: "plain", pipeline: [{$limit: 3}, {$out: "target"}], cursor: {}, writeConcern: {w: 5, wtimeout: 1000}});
assert(unmet.writeConcernError, tojson(unmet));
assert.eq(3, testDB.target.countDocuments({}));
st.stop();
