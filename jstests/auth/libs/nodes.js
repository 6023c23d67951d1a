// Nodes on which users are checked, and connections to them.

/** A standalone node with a user `root`, and a connection that has logged in as it. */
export function startWithRoot(options = {}) {
    const conn = MongoRunner.runMongod(Object.assign({auth: ""}, options));
    assert.commandWorked(conn.getDB("admin").runCommand({createUser: "root", pwd: "p", roles: ["root"]}));
    return {conn, root: logIn(conn, "root", "p")};
}

/** Another connection, logged in. */
export function logIn(conn, user, pwd, db = "admin") {
    const other = new Mongo(conn.host);
    assert(other.getDB(db).auth(user, pwd), `${user}@${db} cannot log in`);
    return other;
}

/** A new user of `admin` with these roles or privileges, logged in. */
export function makeUser(root, name, roles, privileges) {
    const admin = root.getDB("admin");
    if (privileges !== undefined) {
        assert.commandWorked(admin.runCommand({createRole: `role_of_${name}`, privileges, roles: []}));
        roles = roles.concat([`role_of_${name}`]);
    }
    assert.commandWorked(admin.runCommand({createUser: name, pwd: "q", roles}));
    return logIn(root, name, "q");
}
