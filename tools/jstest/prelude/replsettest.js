// ReplSetTest: a replica set of our servers, started, watched, restarted and stopped by a test.
//
//   new ReplSetTest(options) -> startSet(): every node launched, then awaited -> initiate(): replSetInitiate -> ... -> stopSet()
//
// The object keeps one connection for each node in `nodes`; a restarted node gets a new one in its old place.

(function () {
    const kDefaultTimeoutMS = 10 * 60 * 1000;
    const State = {
        STARTUP: 0, PRIMARY: 1, SECONDARY: 2, RECOVERING: 3, STARTUP_2: 5, UNKNOWN: 6, ARBITER: 7, DOWN: 8, ROLLBACK: 9,
        REMOVED: 10,
    };
    const OpTimeType = { LAST_APPLIED: 1, LAST_DURABLE: 2 };

    const testData = () => globalThis.TestData || {};
    const isConnection = (value) => value !== null && typeof value === "object" && typeof value.getDB === "function";
    const admin = (node, command) => node.getDB("admin").runCommand(command);

    class ReplSetTest {
        constructor(given = {}) {
            this.kDefaultTimeoutMS = kDefaultTimeoutMS;
            this.timeoutMS = given.timeoutMS || kDefaultTimeoutMS;
            this.nodes = [];
            this.ports = [];
            if (typeof given === "string" || isConnection(given)) this._attach(given);
            else if (given.rstArgs) this._adopt(given.rstArgs);
            else this._plan(given);
        }

        // ---- becoming ----

        _plan(given) {
            if (given.keyFile) throw new Error("keyFile: these servers do not authenticate each other");
            this.name = given.name || testData().testName || "testReplSet";
            this.useHostName = given.useHostName === undefined ? given.useHostname ?? true : given.useHostName;
            this.host = given.host || (this.useHostName ? getHostName() : "localhost");
            this.useSeedList = Boolean(given.useSeedList);
            this.settings = given.settings;
            this.waitForKeys = given.waitForKeys;
            this.oplogSize = given.oplogSize || 40;
            this.protocolVersion = given.protocolVersion;
            this.startOptions = given.nodeOptions || {};
            this.nodeOptions = {};
            this._isConfigServer = Boolean(given.isConfigServer || (given.nodeOptions || {}).configsvr !== undefined);
            const wishes = nodeWishes(given.nodes ?? given.numNodes ?? 1);
            wishes.forEach((wish, i) => {
                this.nodeOptions["n" + i] = { ...this.startOptions, ...wish };
            });
            this.numNodes = wishes.length;
            this.ports = given.ports
                ? given.ports.map(Number)
                : wishes.map((wish, i) => Number(wish.port || (given.startPort ? Number(given.startPort) + i : MongoRunner.allocatePort())));
            if (given.useBridge) this._useBridges(given.bridgeOptions || {});
        }

        // ---- bridges: the set is known by their ports, and the nodes listen on others ----

        _useBridges(bridgeOptions) {
            this._bridgeOptions = bridgeOptions;
            this._ownPorts = this.ports.map(() => MongoRunner.allocatePort());
            this._bridges = [];
        }
        _ownPort(id) {
            return this._ownPorts === undefined ? this.ports[id] : this._ownPorts[id];
        }
        // The bridge before a node, started when it is first asked for; undefined in a set without.
        _bridgeOf(id) {
            if (this._bridges === undefined) return undefined;
            this._bridges[id] ??= new MongoBridge({
                ...this._bridgeOptions, ...(this.nodeOptions["n" + id]?.bridgeOptions || {}),
                port: this.ports[id], dest: `${getHostName()}:${this._ownPorts[id]}`,
            });
            return this._bridges[id];
        }
        _stopBridges() {
            (this._bridges || []).forEach((bridge) => bridge.stop());
            if (this._bridges) this._bridges = [];
        }

        // A set that somebody else started, known by one of its nodes or by its connection string.
        _attach(seed) {
            const conn = isConnection(seed) ? seed : new Mongo(seed);
            const { config } = assert.commandWorked(admin(conn, { replSetGetConfig: 1 }));
            this.name = config._id;
            const hosts = config.members.map((member) => member.host);
            this.host = hosts[0].replace(/:\d+$/, "");
            this.ports = hosts.map((host) => Number(host.split(":").pop()));
            this.numNodes = hosts.length;
            this.useHostName = this.host !== "localhost";
            this.nodeOptions = Object.fromEntries(hosts.map((_, i) => ["n" + i, {}]));
            this.startOptions = {};
            this._isConfigServer = Boolean(config.configsvr);
            this.nodes = hosts.map((host, i) => this._name(new Mongo(host), i));
        }
        // The same set seen from another thread, by what `getReplSetTestArgs` or a caller wrote down.
        _adopt(args) {
            Object.assign(this, {
                name: args.name, ports: args.nodePorts || args.ports, host: args.host || getHostName(), startOptions: {},
                useHostName: true, nodeOptions: {},
            });
            this.numNodes = this.ports.length;
            this.nodes = this.ports.map((port, i) => this._name(new Mongo(`${this.host}:${port}`), i));
        }

        // ---- names ----

        get numberOfNodes() {
            return this.ports.length;
        }
        get startPort() {
            return this.ports[0];
        }
        nodeList() {
            return this.ports.map((port) => `${this.host}:${port}`);
        }
        getURL() {
            return `${this.name}/${this.nodeList().join(",")}`;
        }
        getPort(n) {
            return this.ports[this.getNodeId(n)];
        }
        getPath(n) {
            return this._optionsOf(this.getNodeId(n)).dbpath;
        }
        getDbPath(n) {
            return this.getPath(n);
        }
        // The place of a node in `nodes`, given the place itself, the node or its connection string.
        getNodeId(node) {
            if (typeof node === "number" || (node && typeof node.toNumber === "function")) return Number(node);
            if (typeof node === "object" && node.nodeId !== undefined) return Number(node.nodeId);
            const wanted = typeof node === "string" ? node : node.host;
            const at = this.nodeList().indexOf(wanted);
            if (at < 0) throw new Error(`no node ${tojson(node)} in set ${this.name}`);
            return at;
        }
        node(n) {
            return this.nodes[this.getNodeId(n)];
        }
        _name(conn, id) {
            conn.nodeId = id;
            conn.port = this.ports[id];
            return conn;
        }

        // ---- configuration ----

        get isConfigServer() {
            return this._isConfigServer;
        }
        getReplSetConfig() {
            const config = { _id: this.name, protocolVersion: 1, version: 1 };
            if (this._isConfigServer) config.configsvr = true;
            config.members = this.nodeList().map((host, i) => ({
                _id: i, host, ...((this.nodeOptions["n" + i] || {}).rsConfig || {}),
            }));
            if (this.settings) config.settings = { ...this.settings };
            return config;
        }
        getReplSetConfigFromNode(node = this.getPrimary()) {
            const conn = typeof node === "number" ? this.nodes[node] : node;
            return assert.commandWorked(admin(conn, { replSetGetConfig: 1 })).config;
        }
        getConfigFromPrimary() {
            return this.getReplSetConfigFromNode();
        }
        waitForConfigReplication(primary = this.getPrimary(), nodes = this.nodes) {
            const version = this.getReplSetConfigFromNode(primary).version;
            this._soon(() => nodes.every((node) => this.getReplSetConfigFromNode(node).version >= version),
                `the members of ${this.name} do not all have configuration ${version}`);
        }
        reInitiate() {
            const wanted = this.getReplSetConfig();
            wanted.version = this.getReplSetConfigFromNode().version + 1;
            assert.commandWorked(admin(this.getPrimary(), { replSetReconfig: wanted }));
            this.awaitNodesAgreeOnPrimary();
        }

        // ---- starting ----

        _optionsOf(id, given = {}) {
            const own = {
                replSet: this.useSeedList ? this.getURL() : this.name,
                dbpath: `$dataRoot/$set-${id}-$port`.replace("$set", this.name),
                ...(this.oplogSize ? { oplogSize: this.oplogSize } : {}),
                ...(this.nodeOptions["n" + id] || {}),
                ...given,
            };
            const parameters = [this.nodeOptions["n" + id]?.setParameter, given.setParameter].filter((p) => p !== undefined && p !== null);
            if (parameters.length > 0) own.setParameter = mergedParameters(parameters);
            own.port = this._ownPort(id);
            own.useHostName = this.useHostName;
            own.dbpath = MongoRunner.toRealDir(own.dbpath, { port: own.port, node: id, set: this.name, ...(own.pathOpts || {}) });
            own.pathOpts = { ...(own.pathOpts || {}), node: id, set: this.name };
            return own;
        }
        _launch(id, given, restart) {
            const options = this._optionsOf(id, given);
            options.restart = restart || undefined;
            if (restart) options.noCleanData = !options.startClean;
            this._bridgeOf(id);
            const server = MongoRunner._launch("mongod", MongoRunner.mongodOptions(options));
            server.waitForConnect = options.waitForConnect;
            return server;
        }
        _take(id, server) {
            const conn = server.waitForConnect === false ? server : MongoRunner._connectTo(server, undefined, this._bridgeOf(id));
            conn.nodeId = id;
            this.nodes[id] = conn;
            return conn;
        }
        startSetAsync(given = {}, restart = false) {
            this._starting = this.ports.map((_, id) => this._launch(id, given, restart));
            return this._starting;
        }
        startSetAwait() {
            this._starting.forEach((server, id) => this._take(id, server));
            this._starting = undefined;
            return this.nodes;
        }
        startSet(given = {}, restart = false) {
            this.startSetAsync(given, restart);
            return this.startSetAwait();
        }

        initiate(config, command = "replSetInitiate") {
            const wanted = config || this.getReplSetConfig();
            if (wanted.members.length > 1) {
                print(`ReplSetTest: asking for a set of ${wanted.members.length} members`);
            }
            const seed = this.nodes[0];
            const reply = admin(seed, { [command]: wanted });
            if (!(reply.codeName === "AlreadyInitialized" && config === undefined && this._resumed)) {
                assert.commandWorked(reply, `replSetInitiate of ${tojsononeline(wanted)}`);
            }
            this.getPrimary();
            return this;
        }
        initiateWithAnyNodeAsPrimary(config, command) {
            return this.initiate(config, command);
        }
        initiateWithNodeZeroAsPrimary(config, command) {
            return this.initiate(config, command);
        }
        initiateWithHighElectionTimeout(config, command) {
            const wanted = config || this.getReplSetConfig();
            wanted.settings = { ...(wanted.settings || {}), electionTimeoutMillis: 24 * 60 * 60 * 1000 };
            return this.initiate(wanted, command);
        }

        // One more member: started here, made a member by the test's own reconfiguration.
        add(given = {}) {
            const id = this.ports.length;
            this.ports.push(Number(given.port || MongoRunner.allocatePort()));
            this._ownPorts?.push(MongoRunner.allocatePort());
            this.nodeOptions["n" + id] = { ...this.startOptions, ...given };
            this.numNodes = this.ports.length;
            return this._take(id, this._launch(id, {}, false));
        }
        // Forgets a node; it is stopped if it runs.
        remove(n) {
            const id = this.getNodeId(n);
            const node = this.nodes[id];
            if (node && node.pid !== undefined && checkProgram(node.pid).alive) this.stop(id);
            this.nodes.splice(id, 1);
            this.ports.splice(id, 1);
            this._ownPorts?.splice(id, 1);
            this._bridges?.splice(id, 1).forEach((bridge) => bridge.stop());
            this.numNodes = this.ports.length;
            const kept = Object.keys(this.nodeOptions).map((name) => this.nodeOptions[name]).filter((_, i) => i !== id);
            this.nodeOptions = Object.fromEntries(kept.map((options, i) => ["n" + i, options]));
            this.nodes.forEach((other, i) => this._name(other, i));
        }

        start(n, given = {}, restart = false, wait = false) {
            if (Array.isArray(n)) return n.map((one) => this.start(one, given, restart, wait));
            const id = this.getNodeId(n);
            const { waitForConnect } = given;
            this._resumed = this._resumed || restart;
            const node = this._take(id, this._launch(id, given, restart));
            if (wait !== false && wait !== undefined && waitForConnect !== false) {
                this.waitForHealth(id, typeof wait === "number" ? wait : undefined);
            }
            return node;
        }
        // Stops a node as the signal says and starts it on its own data again.
        restart(n, given = {}, signal, wait = false) {
            if (Array.isArray(n)) return n.map((one) => this.restart(one, given, signal, wait));
            const id = this.getNodeId(n);
            const { skipValidation, allowedExitCode, ...options } = given || {};
            const node = this.nodes[id];
            if (node && node.pid !== undefined && checkProgram(node.pid).alive) {
                this.stop(id, signal, { skipValidation, ...(allowedExitCode !== undefined ? { allowedExitCode } : {}) },
                    { forRestart: true });
            }
            return this.start(id, options, !options.startClean, wait);
        }

        // ---- stopping ----

        stop(n, signal, given = {}, { forRestart = false, waitpid = true } = {}) {
            if (n === "all") n = this.nodes.map((_, i) => i);
            if (Array.isArray(n)) return n.map((one) => this.stop(one, signal, given, { forRestart, waitpid }));
            const node = this.node(n);
            return MongoRunner.stopMongod(node, signal, given, waitpid);
        }
        kill(n, signal = 9, given) {
            return this.stop(n, signal, given);
        }
        stopPrimary(signal, given) {
            return this.stop(this.getPrimary(), signal, given);
        }
        stopMaster(signal, given) {
            return this.stopPrimary(signal, given);
        }
        // Compares the members unless told not to, then ends them all at once.
        stopSet(signal, forRestart = false, given = {}) {
            const running = this.nodes.filter((node) => node && node.pid !== undefined && checkProgram(node.pid).alive);
            const cleanly = !forRestart && (signal === undefined || signal === 15) && !given.skipCheckDBHashes;
            if (cleanly && running.length > 1 && this.callHello()) this.checkReplicatedDataHashes();
            MongoRunner._stopTogether(running, signal, given);
            if (forRestart) return;
            this._stopBridges();
            if (!given.noCleanData) this.cleanData();
            this.nodes = [];
        }
        // Empties the directories of nodes that do not run.
        cleanData() {
            this.ports.forEach((_, id) => {
                const node = this.nodes[id];
                if (node && node.pid !== undefined && !checkProgram(node.pid).alive) resetDbpath(node.dbpath);
            });
        }

        // ---- the rest ----

        // Runs `fn(conn)`; there is no authentication between members here, so no key is needed.
        asCluster(conn, fn) {
            return fn(conn);
        }
        getReplSetTestArgs() {
            return { name: this.name, nodePorts: this.ports, host: this.host };
        }
        toString() {
            return this.getURL();
        }
        toJSON() {
            return { name: this.name, hosts: this.nodeList() };
        }
    }

    // `nodes` as a list of options for each: a number, a list of options, or {n0: ..., n1: ...}.
    function nodeWishes(nodes) {
        if (typeof nodes === "number" || (nodes && typeof nodes.toNumber === "function")) {
            return Array.from({ length: Number(nodes) }, () => ({}));
        }
        return (Array.isArray(nodes) ? nodes : Object.values(nodes)).map((wish) => {
            const { n, ...options } = wish || {};
            return options;
        });
    }
    function mergedParameters(list) {
        const merged = {};
        for (const one of list) {
            if (typeof one === "string") {
                const [name, ...rest] = one.split("=");
                merged[name] = rest.join("=");
            } else Object.assign(merged, one);
        }
        return merged;
    }

    ReplSetTest.State = State;
    ReplSetTest.OpTimeType = OpTimeType;
    ReplSetTest.kDefaultTimeoutMS = kDefaultTimeoutMS;
    ReplSetTest.kForeverSecs = 24 * 60 * 60;
    ReplSetTest.kForeverMillis = ReplSetTest.kForeverSecs * 1000;

    // Waits until `conn` sees the hosts in a state, as its own view of the set `rs` says: {ok: true, ismaster: true}.
    ReplSetTest.awaitRSClientHosts = function (conn, hosts, hostOk, rs, timeout = kDefaultTimeoutMS) {
        const wanted = (Array.isArray(hosts) ? hosts : [hosts]).map((host) => (typeof host === "object" ? host.host || host.name : host));
        const state = typeof hostOk === "object" ? hostOk : { ok: hostOk };
        assert.soon(() => wanted.every((host) => {
            let hello;
            try {
                hello = new Mongo(host.split("/").pop()).getDB("admin").runCommand({ hello: 1 });
            } catch (error) {
                return state.ok === false;
            }
            if (state.ok === false) return false;
            return (state.ismaster === undefined || hello.isWritablePrimary === state.ismaster) &&
                (state.secondary === undefined || hello.secondary === state.secondary);
        }), `${tojsononeline(wanted)} did not come to ${tojsononeline(state)}`, timeout);
    };

    // Older tests call it without `new`.
    globalThis.ReplSetTest = new Proxy(ReplSetTest, { apply: (target, self, given) => new target(...given) });
})();
