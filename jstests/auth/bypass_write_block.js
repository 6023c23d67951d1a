/**
 * While user writes are blocked, users with the privilege to bypass the block write on, and only those.
 * It fails if the privilege is not asked for, or means nothing.
 *
 * @tags: [requires_own_servers]
 */
import {logIn, makeUser} from "jstests/auth/libs/nodes.js";

const conn = MongoRunner.runMongod({auth: "", replSet: "blocked"});
const admin = conn.getDB("admin");
assert.commandWorked(admin.runCommand({replSetInitiate: {_id: "blocked", members: [{_id: 0, host: conn.host}]}}));
assert.soon(() => assert.commandWorked(admin.runCommand({hello: 1})).isWritablePrimary);
assert.commandWorked(admin.runCommand({createUser: "root", pwd: "p", roles: ["root"]}));
const root = logIn(conn, "root", "p");
const writer = makeUser(root, "writer", [{role: "readWrite", db: "d"}]);
const restorer = makeUser(root, "restorer", [{role: "readWrite", db: "d"}, "restore"]);
const insert = (user) => user.getDB("d").runCommand({insert: "c", documents: [{}]});

assert.commandFailedWithCode(writer.adminCommand({setUserWriteBlockMode: 1, global: true}), ErrorCodes.Unauthorized);
assert.commandWorked(root.adminCommand({setUserWriteBlockMode: 1, global: true}));
assert.commandFailedWithCode(insert(writer), ErrorCodes.UserWritesBlocked);
assert.commandWorked(insert(restorer));
assert.commandWorked(restorer.getDB("d").c.createIndex({x: 1}));
assert.commandWorked(restorer.adminCommand({setUserWriteBlockMode: 1, global: false}));
assert.commandWorked(insert(writer));
MongoRunner.stopMongod(conn);
