/**
 * People find slow queries by the lines of the log, and tools read from them what a query examined, returned and took.
 * It fails if a line lacks the plan or the counts, if a filter does not choose which operations are logged, or if data is shown where the
 * log has to be without.
 *
 * @tags: [requires_own_servers]
 */
const mongod = MongoRunner.runMongod({setParameter: {internalQueryGlobalProfilingFilter: true}});
const db = mongod.getDB("test");
assert.commandWorked(db.c.insert([...Array(20).keys()].map((i) => ({_id: i, a: i % 2}))));
assert.commandWorked(db.c.createIndex({a: 1}));

/** The attributes of the lines about operations with this comment. */
function lines(comment) {
    const log = assert.commandWorked(mongod.adminCommand({getLog: "global"})).log.map((line) => JSON.parse(line));
    return log.filter((line) => line.id === 51803 && line.attr.command.comment === comment).map((line) => line.attr);
}
const read = (comment, filter) => assert.commandWorked(db.runCommand({find: "c", filter, batchSize: 4, comment}));

assert.eq(100, assert.commandWorked(db.runCommand({profile: 0, slowms: -1})).slowms);
read("by index", {a: 1});
read("by scan", {b: {$exists: false}});
const [byIndex] = lines("by index");
assert.eq("command", byIndex.type);
assert.eq("test.c", byIndex.ns);
assert.eq("IXSCAN { a: 1 }", byIndex.planSummary);
assert.eq([4, 4, 4], [byIndex.keysExamined, byIndex.docsExamined, byIndex.nreturned], tojson(byIndex));
for (const field of ["isFromUserConnection", "cursorid", "queryHash", "planCacheKey", "queryShapeHash", "numYields", "reslen", "locks", "remote", "protocol", "durationMillis"]) {
    assert(byIndex.hasOwnProperty(field), () => field + " is not in " + tojson(byIndex));
}
assert.eq("COLLSCAN", lines("by scan")[0].planSummary);
assert.commandFailed(db.runCommand({find: "c", filter: {a: {$none: 1}}, comment: "wrong"}));
assert.eq([ErrorCodes.BadValue, "BadValue"], [lines("wrong")[0].errCode, lines("wrong")[0].errName]);

// A filter chooses instead of the time; the one for all databases counts where none was set since.
assert.commandWorked(db.runCommand({profile: 0, slowms: 100000, filter: {planSummary: "COLLSCAN"}}));
read("chosen", {b: {$exists: false}});
read("passed over", {a: 1});
assert.eq([1, 0], [lines("chosen").length, lines("passed over").length]);

const everywhere = (filter) => assert.commandWorked(mongod.adminCommand({setProfilingFilterGlobally: 1, filter})).was;
assert.eq("none", everywhere({"command.comment": "this"}));
read("this", {a: 1});
read("that", {b: {$exists: false}});
assert.commandWorked(mongod.getDB("other").runCommand({find: "c", comment: "this"}));
assert.eq([2, 0], [lines("this").length, lines("that").length]);
assert.eq({"command.comment": {$eq: "this"}}, assert.commandWorked(mongod.getDB("third").runCommand({profile: -1})).filter);
assert.eq({"command.comment": {$eq: "this"}}, everywhere("unset"));
read("this", {a: 1});
assert.eq(2, lines("this").length);
assert.commandFailedWithCode(mongod.adminCommand({setProfilingFilterGlobally: 1}), 40414);
assert.commandFailedWithCode(mongod.adminCommand({setProfilingFilterGlobally: 1, filter: 1}), ErrorCodes.BadValue);
MongoRunner.stopMongod(mongod);

const redacting = MongoRunner.runMongod({redactClientLogData: ""});
const hidden = redacting.getDB("test");
assert.commandWorked(hidden.runCommand({profile: 0, slowms: -1}));
assert.commandWorked(hidden.runCommand({find: "c", filter: {secret: {$in: ["mine", 4711]}}}));
assert.commandFailed(hidden.runCommand({find: "c", filter: {a: {$secret: 1}}}));
const shown = assert.commandWorked(redacting.adminCommand({getLog: "global"})).log.map((line) => JSON.parse(line))
    .filter((line) => line.id === 51803 && line.attr.ns === "test.c").map((line) => line.attr);
assert.eq({secret: {$in: ["###", "###"]}}, shown[0].command.filter);
assert.eq(["###", "###", "BadValue"], [shown[1].command.filter.a.$secret, shown[1].errMsg, shown[1].errName]);
assert.commandWorked(redacting.adminCommand({setParameter: 1, redactClientLogData: false}));
assert.commandWorked(hidden.runCommand({find: "c", filter: {secret: "mine"}}));
assert(assert.commandWorked(redacting.adminCommand({getLog: "global"})).log.some((line) => line.includes('"mine"')));
MongoRunner.stopMongod(redacting);

const plain = MongoRunner.runMongod({});
assert.commandFailedWithCode(plain.adminCommand({setProfilingFilterGlobally: 1, filter: {}}), 7283301);
MongoRunner.stopMongod(plain);
