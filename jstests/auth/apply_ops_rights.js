/**
 * applyOps asks for each entry what the command asks that does the same. It fails if the right to run applyOps is the right to
 * write anywhere.
 *
 * @tags: [requires_own_servers]
 */
import {makeUser, startWithRoot} from "jstests/auth/libs/nodes.js";

const {conn, root} = startWithRoot();
const admin = root.getDB("admin");
assert.commandWorked(root.getDB("d").c.insert({_id: 0}));
const cluster = {resource: {cluster: true}, actions: ["applyOps"]};
const on = (actions) => ({resource: {db: "d", collection: "c"}, actions});
assert.commandWorked(admin.runCommand({createRole: "applier", privileges: [cluster], roles: []}));
const u = makeUser(root, "u", ["applier"]).getDB("admin");
const insert = {op: "i", ns: "d.c", o: {_id: 1}};
const remove = {op: "d", ns: "d.c", o: {_id: 1}};
const drop = {op: "c", ns: "d.$cmd", o: {drop: "c"}};
const apply = (...ops) => u.runCommand({applyOps: ops});
const denied = (...ops) => assert.commandFailedWithCode(apply(...ops), ErrorCodes.Unauthorized, tojson(ops));

assert.commandWorked(apply());
const users = {op: "i", ns: "admin.system.users", o: {_id: "x"}};
[insert, remove, drop, users].forEach((op) => denied(op));
denied({op: "c", ns: "d.$cmd", o: {dropDatabase: 1}});
denied({op: "c", ns: "admin.$cmd", o: {renameCollection: "d.c", to: "d.e"}});
assert.commandWorked(admin.runCommand({grantPrivilegesToRole: "applier", privileges: [on(["insert", "update"])]}));
assert.commandWorked(apply(insert));
denied(insert, remove);
denied({op: "c", ns: "d.$cmd", o: {applyOps: [remove]}});
assert.eq(2, root.getDB("d").c.find().itcount());
assert.commandWorked(admin.runCommand({grantPrivilegesToRole: "applier", privileges: [on(["remove", "dropCollection"])]}));
assert.commandWorked(apply(remove, drop));
assert.eq([], root.getDB("d").getCollectionNames());
denied(users);

// A UUID may be that of any collection.
const byUUID = Object.assign({ui: UUID()}, insert);
denied(byUUID);
denied({op: "c", ns: "d.$cmd", o: {applyOps: [byUUID]}});
const uuids = {resource: {cluster: true}, actions: ["useUUID", "forceUUID"]};
assert.commandWorked(admin.runCommand({grantPrivilegesToRole: "applier", privileges: [uuids]}));
assert.commandFailedWithCode(apply(byUUID), ErrorCodes.NamespaceNotFound);
MongoRunner.stopMongod(conn);
