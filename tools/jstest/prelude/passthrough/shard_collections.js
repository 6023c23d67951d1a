// Shards every collection behind the test's back: before the first command that would create a namespace reaches a
// router, the collection is sharded on {_id: "hashed"}. A test that never heard of shards then runs over chunks on all
// of them.
//
// Left alone: databases and collections of the servers' own, views, capped, clustered and time series collections,
// what a test has sharded itself, and whatever happens in a transaction, which cannot shard.
(function () {
    "use strict";

    const runCommand = Mongo.prototype.runCommand;
    const OWN_DATABASES = ["admin", "config", "local"];
    // Options of `create` under which a collection cannot be sharded on a hashed _id.
    const NOT_SHARDABLE = ["viewOn", "capped", "timeseries", "clusteredIndex", "temp"];

    /** Namespaces that are settled, as sharded or for good reason not; by `host/namespace`. */
    const settled = new Set();
    /** Whether a connection leads to a router. */
    const routers = new WeakMap();

    function isRouter(connection) {
        if (!routers.has(connection)) {
            const hello = runCommand.call(connection, "admin", {hello: 1}, 0);
            routers.set(connection, hello.msg === "isdbgrid");
        }
        return routers.get(connection);
    }

    /** The namespaces that a command creates when they do not exist. */
    function created(database, name, command) {
        switch (name) {
            case "insert":
            case "update":
            case "findAndModify":
            case "findandmodify":
            case "createIndexes":
            case "create":
                return [`${database}.${command[name]}`];
            case "bulkWrite":
                return (command.nsInfo || []).map(info => info.ns);
            default:
                return [];
        }
    }

    /** Forgets what a command does away with, so that it is sharded again when it comes back. */
    function forget(connection, database, name, command) {
        const dropped = prefix => [...settled].filter(known => known.startsWith(prefix)).forEach(known => settled.delete(known));
        const key = namespace => `${connection.host}/${namespace}`;
        if (name === "drop") settled.delete(key(`${database}.${command.drop}`));
        if (name === "dropDatabase") dropped(key(`${database}.`));
        if (name === "renameCollection") {
            settled.delete(key(command.renameCollection));
            // Whatever stands there afterwards came by the renaming: as it was before.
            settled.add(key(command.to));
        }
        // A test that shards a collection chooses its key.
        if (name === "shardCollection") settled.add(key(command.shardCollection));
    }

    function shard(connection, namespace, options) {
        settled.add(`${connection.host}/${namespace}`);
        const command = {shardCollection: namespace, key: {_id: "hashed"}};
        if (options.collation !== undefined) command.collation = {locale: "simple"};
        const reply = runCommand.call(connection, "admin", command, 0);
        if (reply.ok !== 1) print(`passthrough: ${namespace} stays unsharded: ${reply.errmsg}`);
    }

    function isOurs(connection, namespace) {
        const dot = namespace.indexOf(".");
        const collection = namespace.slice(dot + 1);
        return (
            dot > 0 && collection !== "" && !OWN_DATABASES.includes(namespace.slice(0, dot)) &&
            !collection.startsWith("system.") && !settled.has(`${connection.host}/${namespace}`)
        );
    }

    Mongo.prototype.runCommand = function (database, command, options) {
        const name = command !== null && typeof command === "object" ? Object.keys(command)[0] : undefined;
        const namespaces = name === undefined ? [] : created(database, name, command).filter(ns => isOurs(this, ns));
        if (namespaces.length === 0 || command.autocommit === false || !isRouter(this)) {
            const reply = runCommand.apply(this, arguments);
            if (name !== undefined) forget(this, database, name, command);
            return reply;
        }
        if (name !== "create") {
            namespaces.forEach(namespace => shard(this, namespace, {}));
            return runCommand.apply(this, arguments);
        }
        // Options of the test's own come first: an existing empty collection can still be sharded.
        const reply = runCommand.apply(this, arguments);
        if (reply.ok !== 1) return reply;
        if (NOT_SHARDABLE.some(option => command[option])) settled.add(`${this.host}/${namespaces[0]}`);
        else shard(this, namespaces[0], command);
        return reply;
    };
})();
