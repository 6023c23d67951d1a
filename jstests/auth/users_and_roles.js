/**
 * An administrator gives and takes rights while people work; what a connection may do follows at once.
 * It fails if a granted right is not there or a revoked one stays, or if a dropped user's connection goes on.
 *
 * @tags: [requires_own_servers]
 */
import {logIn, makeUser, startWithRoot} from "jstests/auth/libs/nodes.js";

const {conn, root} = startWithRoot();
const admin = root.getDB("admin");
const u = makeUser(root, "u", []);
const d = u.getDB("d");
const insert = () => d.runCommand({insert: "c", documents: [{}]});
const find = () => d.runCommand({find: "c"});
const denied = (reply) => assert.commandFailedWithCode(reply, ErrorCodes.Unauthorized);

denied(find());
assert.commandWorked(admin.runCommand({grantRolesToUser: "u", roles: [{role: "read", db: "d"}]}));
assert.commandWorked(find());
denied(insert());
const privileges = [{resource: {db: "d", collection: "c"}, actions: ["insert"]}];
assert.commandWorked(admin.runCommand({createRole: "writer", privileges, roles: []}));
assert.commandWorked(admin.runCommand({grantRolesToUser: "u", roles: ["writer"]}));
assert.commandWorked(insert());
denied(d.runCommand({insert: "other", documents: [{}]}));
assert.commandWorked(admin.runCommand({revokePrivilegesFromRole: "writer", privileges}));
denied(insert());
assert.commandWorked(admin.runCommand({grantPrivilegesToRole: "writer", privileges}));
assert.commandWorked(insert());
assert.commandWorked(admin.runCommand({dropRole: "writer"}));
denied(insert());
assert.commandWorked(find());

// What a role inherits counts as its own; a circle is refused.
assert.commandWorked(admin.runCommand({createRole: "a", privileges: [], roles: [{role: "readWrite", db: "d"}]}));
assert.commandWorked(admin.runCommand({createRole: "b", privileges: [], roles: ["a"]}));
assert.commandFailedWithCode(admin.runCommand({grantRolesToRole: "a", roles: ["b"]}), ErrorCodes.InvalidRoleModification);
assert.commandWorked(admin.runCommand({grantRolesToUser: "u", roles: ["b"]}));
assert.commandWorked(insert());
const shown = assert.commandWorked(admin.runCommand({usersInfo: "u", showPrivileges: true})).users[0];
assert.sameMembers(["a", "b", "read", "readWrite"], shown.inheritedRoles.map((r) => r.role));

// A password, and who may change it.
denied(u.getDB("admin").runCommand({updateUser: "u", pwd: "new"}));
const own = [{resource: {db: "admin", collection: ""}, actions: ["changeOwnPassword"]}];
assert.commandWorked(admin.runCommand({createRole: "own", privileges: own, roles: []}));
assert.commandWorked(admin.runCommand({grantRolesToUser: "u", roles: ["own"]}));
assert.commandWorked(u.getDB("admin").runCommand({updateUser: "u", pwd: "new"}));
denied(u.getDB("admin").runCommand({updateUser: "root", pwd: "new"}));
assert(!new Mongo(conn.host).getDB("admin").auth("u", "q"));
logIn(conn, "u", "new");

// Gone, and another of the same name is another.
assert.commandWorked(admin.runCommand({dropUser: "u"}));
denied(find());
assert.commandWorked(admin.runCommand({createUser: "u", pwd: "new", roles: ["root"]}));
denied(find());
MongoRunner.stopMongod(conn);
