/**
 * The profiler shows the beginning of a command of more than 50 KB, as text, and its comment.
 * Fails if the whole command is written, or one that is short is cut.
 *
 * @tags: [
 *   # Routers keep no profile.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const mine = db.getSiblingDB("profile_truncates_test");
assert.commandWorked(mine.runCommand({profile: 0}));
assert.commandWorked(mine.dropDatabase());
const coll = mine.c;
assert.commandWorked(coll.insert({_id: 1}));

const many = Array.from(Array(20000).keys());
assert.commandWorked(mine.runCommand({profile: 2}));
try {
    assert.eq(1, coll.find({_id: {$in: many}}).comment("long").itcount());
    assert.eq(1, coll.find({_id: {$in: [0, 1]}}).comment("short").itcount());
    assert.commandWorked(coll.update({_id: 1}, {$set: {s: "x".repeat(100 * 1024)}}));
} finally {
    assert.commandWorked(mine.runCommand({profile: 0}));
}
function command(filter) {
    const found = mine.system.profile.find(Object.assign({ns: coll.getFullName()}, filter)).toArray();
    assert.eq(1, found.length);
    return found[0].command;
}
const long = command({"command.comment": "long"});
assert.eq(["$truncated", "comment"], Object.keys(long));
assert.eq(50 * 1024, long.$truncated.length);
assert(long.$truncated.startsWith('{ find: "c", filter: { _id: { $in: [ 0'), long.$truncated.substring(0, 100));
assert(long.$truncated.endsWith("..."));
assert.eq({_id: {$in: [0, 1]}}, command({"command.comment": "short"}).filter);
assert.eq(["$truncated"], Object.keys(command({op: "update"})));
assert.commandWorked(mine.dropDatabase());
