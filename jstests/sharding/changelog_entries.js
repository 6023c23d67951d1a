/**
 * config.changelog is where operators look up what happened to a collection; each event has its name and details.
 * It fails if an event is not logged, is logged under another name, or its details lose a field.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, moveRange, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "changelog_entries", first);
const coll = testDB.c;
const ns = coll.getFullName();
const changelog = db.getSiblingDB("config").changelog;
const start = changelog.find().sort({time: -1}).limit(1).toArray().map((e) => e.time)[0] || new Date(0);
function events(what, about) {
    return changelog.find({what: what, ns: about || ns, time: {$gte: start}}).sort({time: 1}).toArray();
}
function last(what, about) {
    const found = events(what, about);
    assert.gt(found.length, 0, `nothing logged as ${what}`);
    const event = found[found.length - 1];
    assert.eq("string", typeof event._id);
    assert.eq("string", typeof event.server);
    assert.eq("string", typeof event.shard);
    assert.eq("string", typeof event.clientAddr);
    assert(event.time instanceof Date, tojson(event));
    assert.eq("object", typeof event.details);
    return event;
}

assert.commandWorked(db.adminCommand({shardCollection: ns, key: {x: 1}}));
let event = last("shardCollection.start");
assert.eq({shardKey: {x: 1}, collection: ns, primary: first}, event.details);
last("shardCollection.end");

assert.commandWorked(db.adminCommand({split: ns, middle: {x: 0}}));
event = last("split");
assert.eq({x: MinKey}, event.details.before.min);
assert.eq({x: MaxKey}, event.details.before.max);
assert.eq([{x: MinKey}, {x: 0}], [event.details.left.min, event.details.left.max]);
assert.eq([{x: 0}, {x: MaxKey}], [event.details.right.min, event.details.right.max]);
assert.eq(first, event.details.owningShard);

moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, second);
for (const what of ["moveChunk.start", "moveChunk.commit"]) {
    event = last(what);
    assert.eq([first, second], [event.details.from, event.details.to], what);
    assert.eq([{x: 0}, {x: MaxKey}], [event.details.min, event.details.max], what);
}
event = last("moveChunk.from");
assert.eq("success", event.details.note);
assert.gte(event.details["step 1 of 6"], 0, tojson(event));
assert.gte(event.details["step 6 of 6"], 0, tojson(event));
assert.soon(() => events("moveChunk.to").length > 0);
event = last("moveChunk.to");
assert.eq("success", event.details.note);
assert.eq([first, second], [event.details.from, event.details.to]);

moveRange(coll, {min: {x: 0}, max: {x: MaxKey}}, first);
assert.commandWorked(db.adminCommand({mergeChunks: ns, bounds: [{x: MinKey}, {x: MaxKey}]}));
event = last("merge");
assert.eq(2, event.details.merged.length);
assert.eq([{x: MinKey}, {x: 0}], event.details.merged.map((c) => c.min));
assert.eq(first, event.details.owningShard);

assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: second}));
event = last("movePrimary.commit", testDB.getName());
assert.commandWorked(db.adminCommand({movePrimary: testDB.getName(), to: first}));

// Renames, of what is sharded and of what is not.
assert.commandWorked(testDB.plain.insert({_id: 1}));
for (const [from, to] of [["c", "renamed"], ["renamed", "c"], ["plain", "other"]]) {
    assert.commandWorked(testDB[from].renameCollection(to));
    const details = {source: testDB[from].getFullName(), destination: testDB[to].getFullName()};
    for (const what of ["renameCollection.start", "renameCollection.end"]) {
        assert.eq(details, last(what, details.source).details, what);
    }
}

assert(coll.drop());
last("dropCollection.start");
last("dropCollection");
assert.commandWorked(testDB.dropDatabase());
last("dropDatabase.start", testDB.getName());
last("dropDatabase", testDB.getName());
