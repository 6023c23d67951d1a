/**
 * A report reads other collections; a user may run it only where it may read each of them.
 * It fails if a nested pipeline or a write at its end passes unasked, or a view asks for more than itself.
 *
 * @tags: [requires_own_servers]
 */
import {makeUser, startWithRoot} from "jstests/auth/libs/nodes.js";

const {conn, root} = startWithRoot();
const d = root.getDB("d");
for (const name of ["open", "secret"]) {
    assert.commandWorked(d[name].insert({_id: 1}));
}
assert.commandWorked(d.createView("window", "secret", [{$project: {_id: 1}}]));
const on = (collection, ...actions) => ({resource: {db: "d", collection}, actions});
const u = makeUser(root, "u", [], [on("open", "find"), on("window", "find"), on("out", "insert", "remove", "update")]).getDB("d");
const run = (pipeline, target = "open") => u.runCommand({aggregate: target, pipeline, cursor: {}});
const secret = {from: "secret", localField: "_id", foreignField: "_id", as: "x"};
const denied = [
    [{$lookup: secret}],
    [{$facet: {f: [{$lookup: secret}]}}],
    [{$unionWith: {coll: "open", pipeline: [{$lookup: secret}]}}],
    [{$lookup: {from: "open", as: "x", pipeline: [{$unionWith: "secret"}]}}],
    [{$unionWith: {db: "e", coll: "open"}}],
    [{$graphLookup: {from: "secret", startWith: "$_id", connectFromField: "_id", connectToField: "_id", as: "x"}}],
    [{$out: "open"}],
    [{$merge: {into: {db: "e", coll: "out"}}}],
    [{$collStats: {}}],
    [{$changeStream: {}}],
];
for (const pipeline of denied) {
    assert.commandFailedWithCode(run(pipeline), ErrorCodes.Unauthorized, () => tojson(pipeline));
    assert.commandFailedWithCode(u.runCommand({explain: {aggregate: "open", pipeline, cursor: {}}}), ErrorCodes.Unauthorized);
}
assert.commandFailedWithCode(run([], "secret"), ErrorCodes.Unauthorized);
// An explanation runs in the request's database, whatever the explained command names.
const elsewhere = (db) => db.getSiblingDB("e").runCommand({explain: {find: "open", $db: "d"}});
assert.commandFailedWithCode(elsewhere(u), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(elsewhere(d), ErrorCodes.InvalidNamespace);
assert.commandWorked(run([{$match: {}}]));
assert.commandWorked(run([{$unionWith: "window"}]));
assert.eq([{_id: 1}], assert.commandWorked(run([], "window")).cursor.firstBatch);
assert.commandWorked(run([{$merge: {into: "out"}}]));
assert.commandWorked(run([{$out: "out"}]));
const error = assert.commandFailedWithCode(run([], "secret"), ErrorCodes.Unauthorized);
assert(error.errmsg.startsWith("not authorized on d to execute command"), error.errmsg);
MongoRunner.stopMongod(conn);
