// Servers of a test: started over the natives, with a directory and a port of their own.
var TestServers = {
    ports: [],
    freePort() {
        const [low, high] = (_getEnv("JSTEST_PORTS") || "21000-29000").split("-").map(Number);
        const port = TestServers.ports.length > 0 ? Math.max(...TestServers.ports) + 1
            : _getEnv("JSTEST_PORTS") ? low : low + Math.floor(Math.random() * (high - low));
        TestServers.ports.push(port);
        return port;
    },
    directory(port) {
        return (_getEnv("JSTEST_DATA") || "/tmp") + "/jstest_lib-" + port;
    },
    start(...options) {
        const port = TestServers.freePort();
        const dbpath = TestServers.directory(port);
        resetDbpath(dbpath);
        const pid = _startMongoProgram("mongod", "--port", port, "--dbpath", dbpath, "--setParameter", "enableTestCommands=1", ...options);
        return {pid, port, dbpath, conn: TestServers.connection(port, pid)};
    },
    connection(port, pid) {
        let conn;
        assert.soon(() => {
            assert(checkProgram(pid).alive, "the server ended");
            try {
                conn = new Mongo("localhost:" + port);
            } catch (error) {
                return false;
            }
            return true;
        }, "no answer on port " + port);
        return conn;
    },
    stop(server) {
        assert.eq(0, Number(_stopMongoProgram(server.port, 15, {}, true)));
    },
};

// Sets of servers.
var TestSets = {
    start(name, members) {
        const nodes = [];
        for (let i = 0; i < members; i++) {
            nodes.push(TestServers.start("--replSet", name));
        }
        const hosts = nodes.map((node) => "localhost:" + node.port);
        const settings = {electionTimeoutMillis: 2000, heartbeatIntervalMillis: 200};
        const config = {_id: name, members: hosts.map((host, _id) => ({_id, host})), settings};
        assert.commandWorked(nodes[0].conn.adminCommand({replSetInitiate: config}));
        return {name, nodes, uri: name + "/" + hosts.join(",")};
    },
    // The member that takes writes, as soon as there is one.
    primary(set) {
        let found;
        assert.soon(() => {
            found = set.nodes.find((node) => node.conn.adminCommand({hello: 1}).isWritablePrimary);
            return found !== undefined;
        }, "no primary in " + set.name, 60000);
        return found;
    },
};
