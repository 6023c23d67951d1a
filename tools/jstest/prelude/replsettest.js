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

    // What a connection that has just broken answers: asked again, it connects anew.
    function patiently(ask) {
        try {
            return ask();
        } catch (error) {
            if (typeof isNetworkError === "function" && !isNetworkError(error)) throw error;
            return ask();
        }
    }

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
            if (given.useBridge || given.bridgeOptions) throw new Error("useBridge: there is no bridge between members here");
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
                : wishes.map((wish) => Number(wish.port || MongoRunner.allocatePort()));
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
            own.port = this.ports[id];
            own.useHostName = this.useHostName;
            own.dbpath = MongoRunner.toRealDir(own.dbpath, { port: own.port, node: id, set: this.name, ...(own.pathOpts || {}) });
            own.pathOpts = { ...(own.pathOpts || {}), node: id, set: this.name };
            return own;
        }
        _launch(id, given, restart) {
            const options = this._optionsOf(id, given);
            options.restart = restart || undefined;
            if (restart) options.noCleanData = !options.startClean;
            const server = MongoRunner._launch("mongod", MongoRunner.mongodOptions(options));
            server.waitForConnect = options.waitForConnect;
            return server;
        }
        _take(id, server) {
            const conn = server.waitForConnect === false ? server : MongoRunner._connectTo(server);
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

        // ---- who is who ----

        _soon(condition, message, timeout = this.timeoutMS) {
            assert.soon(condition, message, timeout, 5);
        }
        _hello(node) {
            return patiently(() => admin(node, { hello: 1 }));
        }
        _live() {
            return this.nodes.filter((node) => node && isConnection(node) && (node.pid === undefined || checkProgram(node.pid).alive));
        }
        // Asks every node who it is; sets `_primary` and `_secondaries`.
        callHello() {
            this._primary = undefined;
            this._secondaries = [];
            this.liveNodes = { primary: undefined, secondaries: [] };
            for (const node of this._live()) {
                let hello;
                try {
                    hello = this._hello(node);
                } catch (error) {
                    continue;
                }
                if (hello.isWritablePrimary) this._primary = node;
                else if (hello.secondary || hello.arbiterOnly) this._secondaries.push(node);
            }
            this.liveNodes = { primary: this._primary, secondaries: this._secondaries };
            return this._primary || false;
        }
        callIsMaster() {
            return this.callHello();
        }
        getPrimary(timeout) {
            this._soon(() => Boolean(this.callHello()), () => `no primary in ${this.name}: ${tojsononeline(this._states())}`, timeout);
            return this._primary;
        }
        getMaster(timeout) {
            return this.getPrimary(timeout);
        }
        each(fn) {
            this.nodes.forEach(fn);
        }
        getSecondaries() {
            const primary = this.getPrimary();
            return this._live().filter((node) => node !== primary);
        }
        getSecondary() {
            return this.getSecondaries()[0];
        }
        // The other members that have data.
        _holders() {
            return this.getSecondaries().filter((node) => !this._hello(node).arbiterOnly);
        }
        getArbiters() {
            return this._live().filter((node) => this._hello(node).arbiterOnly === true);
        }
        getArbiter() {
            return this.getArbiters()[0];
        }
        waitForPrimary(timeout) {
            return this.getPrimary(timeout);
        }
        awaitSecondaryNodes(timeout, nodes) {
            this._soon(() => {
                const primary = this.callHello();
                const wanted = nodes || this._live().filter((node) => node !== primary);
                return wanted.every((node) => this._secondaries.includes(node));
            }, `the other members of ${this.name} are not secondaries`, timeout);
        }
        awaitNodesAgreeOnPrimary(timeout, nodes = this._live(), expected) {
            const wanted = expected === undefined ? undefined : this.nodeList()[this.getNodeId(expected)];
            const names = () => new Set(nodes.map((node) => this._hello(node).primary));
            this._soon(() => {
                const [first, ...others] = names();
                return others.length === 0 && first !== undefined && (wanted === undefined || wanted === first);
            }, `the members of ${this.name} do not agree on a primary`, timeout);
        }
        awaitNodesAgreeOnPrimaryNoAuth(timeout, nodes, expected) {
            this.awaitNodesAgreeOnPrimary(timeout, nodes, expected);
        }
        awaitNodesAgreeOnConfigVersion(timeout, nodes = this._live()) {
            this._soon(() => new Set(nodes.map((node) => Number(this._hello(node).setVersion))).size === 1,
                `the members of ${this.name} do not agree on a configuration`, timeout);
        }
        // Waits until no member has a higher priority than the primary.
        awaitHighestPriorityNodeIsPrimary(timeout) {
            const { members } = this.getReplSetConfigFromNode();
            const highest = Math.max(...members.map((member) => Number(member.priority)));
            const wanted = members.filter((member) => Number(member.priority) === highest).map((member) => member.host);
            this._soon(() => {
                const primary = this.callHello();
                return primary && wanted.includes(this._hello(primary).me);
            }, `no member of the highest priority leads ${this.name}`, timeout);
            this.awaitNodesAgreeOnPrimary(timeout);
        }
        awaitRSClientHosts(conn, hosts, hostOk, rs, timeout) {
            globalThis.ReplSetTest.awaitRSClientHosts(conn, hosts, hostOk, rs, timeout);
        }
        _states() {
            return this._live().map((node) => {
                try {
                    const reply = admin(node, { replSetGetStatus: 1 });
                    return { host: node.host, state: reply.ok ? reply.myState : reply.codeName };
                } catch (error) {
                    return { host: node.host, error: error.message };
                }
            });
        }
        status(timeout) {
            let reply;
            this._soon(() => {
                reply = patiently(() => admin(this._live()[0], { replSetGetStatus: 1 }));
                return reply.ok;
            }, "no member tells its status", timeout);
            return reply;
        }
        getStateOf(node) {
            const reply = admin(node, { replSetGetStatus: 1 });
            return reply.ok ? reply.myState : undefined;
        }
        // Waits until a node, several nodes, or the node at a place is in one of the states.
        waitForState(node, state, timeout) {
            if (Array.isArray(node)) return node.forEach((one) => this.waitForState(one, state, timeout));
            const states = (Array.isArray(state) ? state : [state]).map(Number);
            const id = this.getNodeId(node);
            this._soon(() => {
                const conn = this.nodes[id];
                if (states.includes(State.DOWN) && conn.pid !== undefined && !checkProgram(conn.pid).alive) return true;
                return states.includes(patiently(() => this.getStateOf(conn)));
            }, () => `node ${id} of ${this.name} is not in state ${tojson(state)}: ${tojsononeline(this._states())}`, timeout);
        }
        waitForHealth(n, timeout) {
            const id = this.getNodeId(n);
            this._soon(() => {
                const hello = this._hello(this.nodes[id]);
                return hello.isWritablePrimary || hello.secondary || hello.arbiterOnly || hello.isreplicaset;
            }, `node ${id} of ${this.name} is not healthy`, timeout);
        }
        getHealth() {
            return this.status().members.map((member) => member.health);
        }

        stepUp(node, { awaitReplicationBeforeStepUp = true, awaitWritablePrimary = true } = {}) {
            const conn = this.node(node);
            if (awaitReplicationBeforeStepUp) this.awaitReplication();
            this._soon(() => {
                const reply = admin(conn, { replSetStepUp: 1 });
                return reply.ok || this._hello(conn).isWritablePrimary;
            }, `${conn.host} does not step up`);
            if (awaitWritablePrimary) this._soon(() => this._hello(conn).isWritablePrimary, `${conn.host} takes no writes`);
            return conn;
        }
        stepUpNoAwaitReplication(node) {
            return this.stepUp(node, { awaitReplicationBeforeStepUp: false });
        }
        freeze(node, seconds = 24 * 60 * 60) {
            return assert.commandWorked(admin(this.node(node), { replSetFreeze: seconds }));
        }
        unfreeze(node) {
            return assert.commandWorked(admin(this.node(node), { replSetFreeze: 0 }));
        }

        // ---- replication ----

        _optimes(node) {
            return assert.commandWorked(admin(node, { replSetGetStatus: 1 })).optimes;
        }
        getReadConcernMajorityOpTime(node) {
            return this._optimes(node).readConcernMajorityOpTime;
        }
        getReadConcernMajorityOpTimeOrThrow(node) {
            const optime = this.getReadConcernMajorityOpTime(node);
            assert(rs.isValidOpTime(optime), () => `${node.host} has nothing that a majority has: ${tojsononeline(optime)}`);
            return optime;
        }
        // Waits until all (or the given) members have applied what the primary has.
        awaitReplication(timeout, type = OpTimeType.LAST_APPLIED, secondaries) {
            const primary = this.getPrimary();
            const field = type === OpTimeType.LAST_DURABLE ? "durableOpTime" : "appliedOpTime";
            const wanted = this._optimes(primary).appliedOpTime;
            const others = secondaries || this._holders();
            this._soon(() => others.every((node) => rs.compareOpTimes(this._optimes(node)[field], wanted) >= 0),
                `members of ${this.name} lag behind ${tojsononeline(wanted)}`, timeout);
        }
        awaitLastOpCommitted(timeout, members = this._live()) {
            const wanted = this._optimes(this.getPrimary()).appliedOpTime;
            this._soon(() => members.every((node) => rs.compareOpTimes(this._optimes(node).lastCommittedOpTime, wanted) >= 0),
                `${tojsononeline(wanted)} is not committed on every member of ${this.name}`, timeout);
            return wanted;
        }
        awaitLastStableRecoveryTimestamp() {
            const primary = this.getPrimary();
            assert.commandWorked(admin(primary, { appendOplogNote: 1, data: { awaitLastStableRecoveryTimestamp: 1 } }));
            this.awaitLastOpCommitted();
            this._live().forEach((node) => assert.commandWorked(admin(node, { fsync: 1 })));
        }
        awaitNodesAgreeOnAppliedOpTime(timeout, nodes = this._live()) {
            this._soon(() => {
                const [first, ...others] = nodes.map((node) => this._optimes(node).appliedOpTime);
                return others.every((other) => rs.compareOpTimes(first, other) === 0);
            }, `members of ${this.name} do not agree on the applied time`, timeout);
        }
        getLastOpTimeWritten(node) {
            return this.findOplog(node, {}, 1).toArray()[0];
        }
        // Oplog entries that match, newest first.
        findOplog(conn, query, limit) {
            return conn.getDB("local").getCollection("oplog.rs").find(query).sort({ $natural: -1 }).limit(limit || 0);
        }
        dumpOplog(conn, query = {}, limit = 10) {
            print(`the oplog of ${conn.host}:\n` + this.findOplog(conn, query, limit).toArray().map(tojsononeline).join("\n"));
        }
        // Writes until the first entry of a node's oplog has been dropped from it.
        overflow() {
            throw new Error("overflow: the oplog of these servers does not drop entries by size");
        }

        // ---- comparing the members ----

        getHashes(dbName, nodes = [this.getPrimary(), ...this._holders()]) {
            const hash = (node) => assert.commandWorked(node.getDB(dbName).runCommand({ dbHash: 1 }));
            return { primary: hash(nodes[0]), secondaries: nodes.slice(1).map(hash) };
        }
        _databases(excluded) {
            const { databases } = assert.commandWorked(admin(this.getPrimary(), { listDatabases: 1, nameOnly: true }));
            return databases.map((d) => d.name).filter((name) => name !== "local" && !excluded.includes(name));
        }
        // Every database has the same contents on all members: trivially so on a set of one.
        checkReplicatedDataHashes(prefix = "checkReplicatedDataHashes", excluded = [], ignoreUUIDs = false) {
            if (testData().skipCheckDBHashes) return;
            const others = this._holders();
            if (others.length === 0) return;
            this.awaitReplication();
            for (const name of this._databases(excluded)) {
                const { primary, secondaries } = this.getHashes(name);
                secondaries.forEach((hash, i) => {
                    assert.eq(primary.collections, hash.collections, `${prefix}: ${name} differs on ${others[i].host}`);
                });
            }
        }
        checkOplogs(prefix = "checkOplogs") {
            const others = this._holders();
            const tail = (node) => this.findOplog(node, {}, 100).toArray().map((entry) => entry.ts);
            const wanted = others.length > 0 ? tail(this.getPrimary()) : [];
            others.forEach((node) => assert.eq(wanted, tail(node), `${prefix}: the oplog of ${node.host} differs`));
        }
        // The number of documents that metadata tells is the number that a scan finds, on each member.
        checkCollectionCounts(prefix = "checkCollectionCounts") {
            for (const node of this._live()) {
                for (const name of this._databases(["admin", "config"])) {
                    const database = node.getDB(name);
                    for (const { name: coll, type } of database.getCollectionInfos({ type: "collection" })) {
                        const fast = database.getCollection(coll).count();
                        const scanned = database.getCollection(coll).find().hint({ $natural: 1 }).itcount();
                        assert.eq(fast, scanned, `${prefix}: ${name}.${coll} on ${node.host}`);
                    }
                }
            }
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
