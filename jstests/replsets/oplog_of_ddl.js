/**
 * Changes of the catalog are command entries of the oplog, each naming what was done and to which collection.
 * It fails if a command leaves no entry, names another collection, or its form changes.
 *
 * @tags: [requires_replication]
 */
const testDB = db.getSiblingDB("oplog_of_ddl");
testDB.dropDatabase();
const oplog = db.getSiblingDB("local").getCollection("oplog.rs");
const newest = () => oplog.find().sort({$natural: -1}).limit(1).next().ts;

/** The command entries of the database that `act` writes, by the name of the command. */
function commands(act) {
    const before = newest();
    act();
    const found = oplog.find({ts: {$gt: before}, op: "c", ns: "oplog_of_ddl.$cmd"}).sort({$natural: 1}).toArray();
    found.forEach((entry) => {
        assert.eq(NumberLong(2), entry.v);
        assert(entry.wall instanceof Date);
    });
    return found;
}
const names = (found) => found.map((entry) => Object.keys(entry.o)[0]);
const uuidOf = (name) => testDB.getCollectionInfos({name: name})[0].info.uuid;

let found = commands(() => assert.commandWorked(testDB.createCollection("c")));
assert.eq(["create"], names(found));
assert.eq("c", found[0].o.create);
assert.docEq({v: 2, key: {_id: 1}, name: "_id_"}, found[0].o.idIndex);
assert.eq(uuidOf("c"), found[0].ui);
const uuid = uuidOf("c");

// Options go along.
found = commands(() => assert.commandWorked(testDB.createCollection("capped", {capped: true, size: 4096, max: 5})));
assert.eq(true, found[0].o.capped);
assert.eq(5, Number(found[0].o.max));

// The first insert makes the collection.
found = commands(() => assert.commandWorked(testDB.made.insert({_id: 1})));
assert.eq(["create"], names(found));

// Indexes: on an empty collection at once.
found = commands(() => assert.commandWorked(testDB.c.createIndex({a: 1}, {unique: true})));
assert.eq(["createIndexes"], names(found));
assert.eq("c", found[0].o.createIndexes);
assert.docEq({a: 1}, found[0].o.key);
assert.eq("a_1", found[0].o.name);
assert.eq(true, found[0].o.unique);
assert.eq(2, found[0].o.v);
assert.eq(uuid, found[0].ui);

// On a filled one: a build that is started and committed, or, where nobody else has to take part, one entry as well.
assert.commandWorked(testDB.c.insert({a: 1}));
found = commands(() => assert.commandWorked(testDB.c.createIndex({b: 1})));
const last = found[found.length - 1];
assert.contains(names(found).join(), ["startIndexBuild,commitIndexBuild", "createIndexes"]);
assert.eq("b_1", last.o.indexes ? last.o.indexes[0].name : last.o.name);
assert.eq(uuid, last.ui);

found = commands(() => assert.commandWorked(testDB.c.dropIndex("a_1")));
assert.eq(["dropIndexes"], names(found));
assert.eq("c", found[0].o.dropIndexes);
assert.eq("a_1", found[0].o.index);
assert.docEq({a: 1}, found[0].o2.key);
assert.eq(uuid, found[0].ui);

found = commands(() => assert.commandWorked(testDB.runCommand({collMod: "c", validator: {a: {$exists: true}}})));
assert.eq(["collMod"], names(found));
assert.docEq({a: {$exists: true}}, found[0].o.validator);
assert.eq(uuid, found[0].ui);

found = commands(() => assert.commandWorked(testDB.c.renameCollection("renamed")));
assert.eq(["renameCollection"], names(found));
assert.eq("oplog_of_ddl.c", found[0].o.renameCollection);
assert.eq("oplog_of_ddl.renamed", found[0].o.to);
assert.eq(uuid, found[0].ui);

const target = uuidOf("made");
found = commands(() => assert.commandWorked(testDB.renamed.renameCollection("made", true)));
assert.eq(["renameCollection"], names(found));
assert.eq(target, found[0].o.dropTarget);
assert.eq(uuid, uuidOf("made"));

found = commands(() => assert(testDB.made.drop()));
assert.eq(["drop"], names(found));
assert.eq("made", found[0].o.drop);
assert.eq(uuid, found[0].ui);
assert.eq(1, Number(found[0].o2.numRecords));

// What does not change anything, or fails, leaves no entry.
assert.eq([], commands(() => testDB.absent.drop()));
assert.eq([], commands(() => assert.commandFailedWithCode(testDB.createCollection("capped"), 48)));

// Everything goes with the database: each collection first.
found = commands(() => assert.commandWorked(testDB.dropDatabase()));
assert.eq("dropDatabase", names(found)[names(found).length - 1]);
assert.eq(1, found[found.length - 1].o.dropDatabase);
assert.contains("capped", found.map((entry) => entry.o.drop));
