/**
 * Whoever may change a view gives itself no right to what the view could show.
 * It fails if a collMod with half a definition, or a view that applyOps makes or changes, is not asked for like a create.
 *
 * @tags: [requires_own_servers]
 */
import {makeUser, startWithRoot} from "jstests/auth/libs/nodes.js";

const {conn, root} = startWithRoot();
const d = root.getDB("d");
for (const name of ["open", "secret"]) {
    assert.commandWorked(d[name].insert({_id: name}));
}
assert.commandWorked(d.createView("v", "open", []));
const on = (collection, ...actions) => ({resource: {db: "d", collection}, actions});
const changes = ["find", "createCollection", "convertToCapped", "collMod"];
const applies = {resource: {cluster: true}, actions: ["applyOps"]};
const privileges = [on("open", "find"), on("v", ...changes), on("w", ...changes), on("system.views", "insert", "update"), applies];
const u = makeUser(root, "u", [], privileges);
const [mine, admin] = [u.getDB("d"), u.getDB("admin")];
const denied = (reply, what) => assert.commandFailedWithCode(reply, ErrorCodes.Unauthorized, () => tojson(what));

const union = [{$unionWith: "secret"}];
for (const half of [{pipeline: union}, {viewOn: "secret"}]) {
    const command = Object.assign({collMod: "v"}, half);
    assert.commandFailedWithCode(mine.runCommand(command), ErrorCodes.InvalidOptions, () => tojson(command));
    assert.commandFailedWithCode(d.runCommand(command), ErrorCodes.InvalidOptions);
}
for (const whole of [{viewOn: "open", pipeline: union}, {viewOn: "secret", pipeline: []}]) {
    const definition = (command) => ({op: "c", ns: "d.$cmd", o: Object.assign(command, whole)});
    denied(mine.runCommand(Object.assign({collMod: "v"}, whole)), whole);
    for (const entry of [
        definition({create: "w"}),
        definition({collMod: "v"}),
        {op: "c", ns: "d.$cmd", o: {applyOps: [definition({collMod: "v"})]}},
        {op: "i", ns: "d.system.views", o: Object.assign({_id: "d.w"}, whole)},
        {op: "u", ns: "d.system.views", o2: {_id: "d.v"}, o: Object.assign({_id: "d.v"}, whole)},
    ]) {
        denied(admin.runCommand({applyOps: [entry]}), entry);
    }
}
denied(admin.runCommand({applyOps: [{op: "c", ns: "d.$cmd", o: {collMod: "v", pipeline: union}}]}), "half a view");
assert.eq([{_id: "open"}], mine.v.find().toArray());

// What shows nothing else may be made.
assert.commandWorked(mine.runCommand({collMod: "v", viewOn: "open", pipeline: [{$match: {_id: 1}}]}));
assert.commandWorked(admin.runCommand({applyOps: [{op: "c", ns: "d.$cmd", o: {create: "w", viewOn: "open", pipeline: []}}]}));
assert.eq([{_id: "open"}], mine.w.find().toArray());
MongoRunner.stopMongod(conn);
