/**
 * What create and drop say of a collection is what was meant: sizes are whole numbers however they were written, and a view, which has no
 * indexes, counts none. It fails if options are kept as they came, or drop counts the indexes of a view.
 *
 * @tags: [assumes_unsharded_collection]
 */
const own = db.getSiblingDB("create_options_kept");
assert.commandWorked(own.runCommand({create: "capped", capped: true, size: 4096.5, max: NumberDecimal("10")}));
const options = own.getCollectionInfos({name: "capped"})[0].options;
assert.eq(["4096", "10"], [options.size, options.max].map(n => Number(n).toString()));
assert.commandFailedWithCode(own.runCommand({create: "c", idIndex: {key: {_id: 1}, name: ""}}), ErrorCodes.CannotCreateIndex);

assert.commandWorked(own.runCommand({create: "v", viewOn: "capped", pipeline: []}));
const dropped = assert.commandWorked(own.runCommand({drop: "v"}));
assert.eq("create_options_kept.v", dropped.ns);
assert(!dropped.hasOwnProperty("nIndexesWas"), tojson(dropped));
assert.eq(1, assert.commandWorked(own.runCommand({drop: "capped"})).nIndexesWas);

assert.commandFailedWithCode(own.runCommand({create: "w", viewOn: "", pipeline: []}), ErrorCodes.BadValue);
assert.commandFailedWithCode(own.runCommand({create: "w", viewOn: "c", pipeline: [{$listSessions: {}}]}), ErrorCodes.InvalidNamespace);
assert(!own.getCollectionNames().includes("w"));
