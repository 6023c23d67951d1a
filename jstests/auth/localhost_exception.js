/**
 * The first user of a new deployment is made from the machine itself, and after that nobody comes in without a login.
 * It fails if the exception grants more than making that user, or stays open once there is one.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod({auth: ""});
const admin = conn.getDB("admin");
assert.commandWorked(admin.runCommand({ping: 1}));
for (const command of [{find: "c"}, {listDatabases: 1}, {serverStatus: 1}, {currentOp: 1, $ownOps: true}, {usersInfo: 1},
                       {aggregate: 1, pipeline: [{$currentOp: {}}], cursor: {}},
                       {aggregate: 1, pipeline: [{$listLocalSessions: {}}], cursor: {}}]) {
    assert.commandFailedWithCode(admin.runCommand(command), ErrorCodes.Unauthorized, () => tojson(command));
}
assert.commandFailedWithCode(conn.getDB("d").runCommand({createUser: "u", pwd: "p", roles: []}), ErrorCodes.Unauthorized);
assert.commandWorked(admin.runCommand({createUser: "root", pwd: "p", roles: ["root"]}));
assert.commandFailedWithCode(admin.runCommand({createUser: "second", pwd: "p", roles: []}), ErrorCodes.Unauthorized);
const error = assert.commandFailedWithCode(admin.runCommand({find: "c"}), ErrorCodes.Unauthorized);
assert.eq("Command find requires authentication", error.errmsg);
assert.commandFailedWithCode(new Mongo(conn.host).getDB("admin").runCommand({createUser: "second", pwd: "p", roles: []}),
                             ErrorCodes.Unauthorized);
assert(!new Mongo(conn.host).getDB("admin").auth("root", "wrong"));
assert(admin.auth("root", "p"));
assert.commandWorked(admin.runCommand({find: "c"}));
assert.commandWorked(admin.runCommand({logout: 1}));
assert.commandFailedWithCode(admin.runCommand({find: "c"}), ErrorCodes.Unauthorized);
assert(admin.auth("root", "p"));
MongoRunner.stopMongod(conn);
