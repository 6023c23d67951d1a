/**
 * Administrators read logs and profiles, and copy them to others; no password is in them.
 * It fails if the line of a slow command, the profiler or an error shows a password that a command was given.
 *
 * @tags: [requires_own_servers]
 */
import {makeUser, startWithRoot} from "jstests/auth/libs/nodes.js";

const {conn, root} = startWithRoot();
const [d, admin] = [root.getDB("d"), root.getDB("admin")];
const pwd = "only-for-me-8731";
assert.commandWorked(d.runCommand({profile: 2, slowms: -1}));
assert.commandWorked(d.runCommand({createUser: "x", pwd, roles: []}));
assert.commandWorked(d.runCommand({updateUser: "x", pwd}));
const u = makeUser(root, "u", []).getDB("d");
const error = assert.commandFailedWithCode(u.runCommand({createUser: "y", pwd, roles: []}), ErrorCodes.Unauthorized);
assert(!error.errmsg.includes(pwd), error.errmsg);

const lines = assert.commandWorked(admin.runCommand({getLog: "global"})).log;
assert(lines.some((line) => line.includes("createUser")), "the command is slow enough to be logged");
assert.eq([], lines.filter((line) => line.includes(pwd)));
const rows = d.system.profile.find({"command.createUser": "x"}).toArray();
assert.eq(1, rows.length);
assert.eq(["xxx", "root@admin"], [rows[0].command.pwd, rows[0].user]);
assert.eq([{user: "root", db: "admin"}], rows[0].allUsers);
MongoRunner.stopMongod(conn);
