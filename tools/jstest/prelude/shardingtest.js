// ShardingTest: a sharded cluster of our servers, started for a test and examined when it stops.
//
//   all processes launched at once: config set, shards, routers
//   -> sets initiated -> routers answer -> settings written -> shards added
//   stop(): consistency checks (checks.js) -> routers, shards, config servers ended
//
// Each set has one member: that is the default of its options, and more than one is asked of the server, which says no.

(function () {
    // Options of a set as such; all others of a shard or of the config servers go to its nodes.
    const SET_OPTIONS = new Set([
        "nodes", "numNodes", "name", "settings", "protocolVersion", "oplogSize", "useHostName", "useHostname", "host",
        "waitForKeys", "ports", "keyFile", "useBridge", "bridgeOptions", "timeoutMS", "isConfigServer",
        "initiateWithDefaultElectionTimeout", "seedRandomNumberGenerator",
    ]);
    // What a test expects of a cluster unless it says otherwise: orphans go soon, and sessions do not fill with chunks.
    const SHARD_PARAMETERS = { orphanCleanupDelaySecs: 1 };
    const CONFIG_PARAMETERS = { minNumChunksForSessionsCollection: 1 };
    const ROUTER_PARAMETERS = { mongosShutdownTimeoutMillisForSignaledShutdown: 0 };

    const testData = () => globalThis.TestData || {};

    // `shards`, `mongos`, `config` may be a number, a list of options, or options by name ("rs0", "s0", "c0", "d0").
    function wishes(value, fallback) {
        if (value === undefined || value === null || value === true) return Array.from({ length: fallback }, () => ({}));
        if (value === false) return [];
        if (typeof value === "number" || typeof value.toNumber === "function") {
            return Array.from({ length: Number(value) }, () => ({}));
        }
        return (Array.isArray(value) ? value : Object.values(value)).map((one) => ({ ...(one || {}) }));
    }

    // Later options win; parameters of the server are put together.
    function merged(...list) {
        const whole = {};
        const parameters = {};
        for (const one of list) {
            if (one === undefined || one === null || typeof one !== "object") continue;
            const { setParameter, ...rest } = one;
            Object.assign(whole, rest);
            Object.assign(parameters, parametersOf(setParameter));
        }
        whole.setParameter = parameters;
        return whole;
    }
    function parametersOf(given) {
        if (given === undefined || given === null) return {};
        if (Array.isArray(given)) return Object.assign({}, ...given.map(parametersOf));
        if (typeof given !== "string") return given;
        const [name, ...rest] = given.split("=");
        return { [name]: rest.join("=") };
    }
    function partitioned(options) {
        const [set, node] = [{}, {}];
        for (const [name, value] of Object.entries(options)) (SET_OPTIONS.has(name) ? set : node)[name] = value;
        return { set, node };
    }

    class ShardingTest {
        constructor(given = {}, ...positional) {
            const params = typeof given === "object" ? given : positionalParameters(given, ...positional);
            const options = { ...(params.other || {}), ...params };
            if (options.keyFile) throw new Error("keyFile: these servers do not authenticate each other");
            this._options = options;
            this._testName = options.name || testData().testName || "test";
            this._otherParams = options;
            this._useHostname = options.useHostname ?? options.useHostName ?? true;
            this._hostName = options.host || (this._useHostname ? getHostName() : "localhost");
            this.isConfigShardMode = Boolean(options.configShard);
            this._start();
        }

        // ---- starting ----

        _start() {
            this._routerBridges = [];
            this._planSets();
            try {
                this._sets().forEach((test) => test.startSetAsync());
                this._launched = this._planRouters().map((options, i) => this._launchRouter(i, options));
                this._initiate();
                this._connectRouters(this._launched);
                this._settle();
            } catch (error) {
                this._abandon();
                throw error;
            }
        }

        _planSets() {
            const options = this._options;
            const both = this.isConfigShardMode ? { setParameter: SHARD_PARAMETERS } : {};
            const config = merged({ setParameter: CONFIG_PARAMETERS }, both, options.configOptions, wishes(options.config, 1)[0], options.c0);
            this.configRS = this._set(`${this._testName}-configRS`, { ...config, configsvr: "" }, wishes(options.config, 1));
            const rsDefaults = typeof options.rs === "object" ? options.rs : {};
            this._rs = wishes(options.shards, options.numShards ?? 2).map((own, i) => {
                const all = merged({ setParameter: SHARD_PARAMETERS }, options.shardOptions, options.rsOptions, rsDefaults,
                    options["rs" + i], options["d" + i], own);
                const test = i === 0 && this.isConfigShardMode
                    ? this.configRS : this._set(`${this._testName}-rs${i}`, { ...all, shardsvr: "" });
                return { setName: test.name, test, nodes: test.nodes, url: test.getURL() };
            });
            this._configNames = this.configRS.nodeList();
            this._configDB = this.configRS.getURL();
            this._numShards = this._rs.length;
        }
        // Every set once: the config servers may be the first shard, too.
        _sets() {
            return [...new Set([this.configRS, ...(this._rs || []).map(({ test }) => test)])].filter((set) => set);
        }
        // `members`: the config servers as they were asked for one by one.
        _set(name, options, members) {
            const { set, node } = partitioned(options);
            const nodes = set.nodes ?? set.numNodes ?? (members ? members.map(() => ({})) : 1);
            const { useBridge, bridgeOptions } = this._options;
            return new ReplSetTest({
                name, useBridge, bridgeOptions, ...set, nodes, host: this._hostName, useHostName: this._useHostname, nodeOptions: node,
                isConfigServer: members !== undefined,
            });
        }
        _planRouters() {
            const options = this._options;
            this._mongosOptions = wishes(options.mongos, 1).map((own, i) => merged(
                { setParameter: ROUTER_PARAMETERS }, options.mongosOptions, options["s" + i], own,
                { configdb: this._configDB, useHostname: this._useHostname, pathOpts: { mongos: i } }));
            return this._mongosOptions.map((one) => MongoRunner.mongosOptions(one));
        }

        _initiate() {
            this._sets().forEach((test) => test.startSetAwait());
            this._sets().forEach((test) => test.initiate(undefined));
            this._configServers = this.configRS.nodes;
            this._nameConfig();
        }
        _nameConfig() {
            this.configRS.nodes.forEach((node, i) => {
                this["config" + i] = node;
                this["c" + i] = node;
            });
        }
        _connectRouters(launched) {
            this._mongos = [];
            launched.forEach((server, i) => this._takeRouter(i, MongoRunner._connectTo(server, undefined, this._routerBridges[i])));
        }
        // Starts a router; with `useBridge` there is a bridge before it, which stays when the router is started again.
        _launchRouter(i, options) {
            const server = MongoRunner._launch("mongos", options);
            if (this._options.useBridge) {
                const dest = `${getHostName()}:${server.port}`;
                this._routerBridges[i] ??= new MongoBridge({ ...(this._options.bridgeOptions || {}), dest });
            }
            return server;
        }
        _takeRouter(i, conn) {
            this._mongos[i] = conn;
            this["s" + i] = conn;
            if (i === 0) {
                this.s = conn;
                this.admin = conn.getDB("admin");
                this.config = conn.getDB("config");
            }
            return conn;
        }

        _settle() {
            const options = this._options;
            this._connectShards();
            if (this.s === undefined) return;
            if (options.chunkSize) {
                assert.commandWorked(this.config.settings.update({ _id: "chunksize" }, { $set: { value: options.chunkSize } }, { upsert: true }));
            }
            if (!options.enableBalancer) this.stopBalancer();
            if (this.isConfigShardMode) {
                assert.commandWorked(this.s.adminCommand({ transitionFromDedicatedConfigServer: 1 }));
            }
            if (!options.manualAddShard) this._addShards();
        }
        _connectShards() {
            this._shardReplicaSetTests = this._rs.map(({ test }) => test);
            this._connections = [];
            this._rs.forEach(({ test }, i) => {
                this["rs" + i] = test;
                this._connectShard(i);
            });
        }
        _connectShard(i, shardName) {
            const { test } = this._rs[i];
            const conn = new Mongo(test.getURL());
            Object.assign(conn, { rs: test, shardName, name: test.getURL(), port: test.ports[0], pid: test.nodes[0].pid });
            this._connections[i] = this["shard" + i] = conn;
            this["d" + i] = test.getPrimary();
            return conn;
        }
        _addShards() {
            this._connections.forEach((conn, i) => {
                if (conn.rs === this.configRS) {
                    conn.shardName = "config";
                    return;
                }
                const name = this._options.shardNames?.[i];
                const reply = this.s.adminCommand({ addShard: this._rs[i].test.getURL(), ...(name ? { name } : {}) });
                conn.shardName = assert.commandWorked(reply, `addShard ${this._rs[i].url}`).shardAdded;
            });
        }
        // A cluster that could not be started leaves nothing behind.
        _abandon() {
            for (const pid of MongoRunner.runningChildPids()) {
                if (this._ownPids().includes(pid)) stopMongoProgramByPid(pid, 9);
            }
        }
        _ownPids() {
            const nodes = this._sets().flatMap((set) => [...(set._starting || []), ...set.nodes]);
            const bridges = [...this._sets().flatMap((set) => set._bridges || []), ...this._routerBridges];
            return [...nodes, ...(this._launched || []), ...bridges].map((server) => server && server.pid);
        }

        // ---- asking ----

        getDB(name) {
            return this.s.getDB(name);
        }
        adminCommand(command) {
            const reply = this.s.adminCommand(command);
            if (reply && reply.ok) return true;
            throw _getErrorWithCode ? _getErrorWithCode(reply, `command ${tojson(command)} failed: ${tojson(reply)}`) : new Error(tojson(reply));
        }
        getConnNames() {
            return this._connections.map((conn) => conn.name || conn.host);
        }
        getNumShards() {
            return this._connections.length;
        }
        getRSEntry(setName) {
            const found = this._rs.find((entry) => entry.setName === setName);
            if (found === undefined) throw new Error(`no set ${setName} in this cluster`);
            return found;
        }
        getConfigIndex(config) {
            const at = this._configServers.findIndex((conn) => conn === config || conn.host === config || connectionURLTheSame(conn.host, config));
            return at;
        }

        // The id of the shard a database lives on.
        getPrimaryShardIdForDatabase(name) {
            return this.s.getDB(String(name)).getDatabasePrimaryShardId();
        }
        getPrimaryShardName(name) {
            return this.getPrimaryShardIdForDatabase(name);
        }
        getServerName(name) {
            return this.config.shards.findOne({ _id: this.getPrimaryShardIdForDatabase(name) }).host;
        }
        getServer(name) {
            return this._connectionOf(this.getPrimaryShardIdForDatabase(name));
        }
        getPrimaryShard(name) {
            return this.getServer(name);
        }
        getNonPrimaries(name) {
            const primary = this.getPrimaryShardIdForDatabase(name);
            return this._connections.map((conn) => conn.shardName).filter((id) => id !== primary);
        }
        _connectionOf(id) {
            const byName = this._connections.find((conn) => conn.shardName === id);
            if (byName !== undefined) return byName;
            const host = this.config.shards.findOne({ _id: id })?.host;
            const byHost = this._connections.find((conn) => host !== undefined && connectionURLTheSame(conn.host, host));
            if (byHost === undefined) throw new Error(`no connection to shard ${id}`);
            return byHost;
        }
        // The first shard that is not this one.
        getOther(one) {
            if (this._connections.length < 2) throw new Error("getOther needs two shards");
            const name = nameOf(one);
            return this._connections.find((conn) => !this._is(conn, name));
        }
        getFirstOther(one) {
            return this.getOther(one);
        }
        // The next shard after this one.
        getAnother(one) {
            const at = this._connections.findIndex((conn) => this._is(conn, nameOf(one)));
            return this._connections[(at + 1) % this._connections.length];
        }
        _is(conn, name) {
            return conn.shardName === name || conn.name === name || conn.host === name || conn.rs.nodeList().includes(name);
        }
        // The names of the shards whose chunks a query reaches.
        getShardNames(coll, query) {
            return Object.keys(coll.find(query).explain().queryPlanner.winningPlan.shards.reduce(
                (names, shard) => ({ ...names, [shard.shardName]: true }), {}));
        }
        // The connections of the shards that hold documents of `coll` that match (all that could, with `includeEmpty`).
        getShards(coll, query, includeEmpty) {
            if (includeEmpty) return this.getShardNames(coll, query).map((id) => this._connectionOf(id));
            return this._connections.filter((conn) => conn.getCollection(coll.getFullName()).findOne(query || {}) !== null);
        }
        getShard(coll, query, includeEmpty) {
            const shards = this.getShards(coll, query, includeEmpty);
            assert.eq(1, shards.length, `${tojson(query)} is on ${shards.length} shards`);
            return shards[0];
        }
        isSharded(name) {
            const entry = this.config.collections.findOne({ _id: String(name) });
            return entry !== null && entry.unsplittable !== true;
        }

        // ---- restarting ----

        forEachConnection(fn) {
            this._connections.forEach(fn);
        }
        forEachMongos(fn) {
            this._mongos.forEach(fn);
        }
        forEachConfigServer(fn) {
            this.configRS.nodes.forEach(fn);
        }
        getAllMongos() {
            return this._mongos;
        }

        stopMongos(n, given) {
            return MongoRunner.stopMongos(this["s" + n], undefined, given);
        }
        killMongos(n) {
            return MongoRunner.stopMongos(this["s" + n], 9);
        }
        // Stops a router and starts it again, or another that was described by `given`.
        restartMongos(n = 0, given) {
            const old = this["s" + n];
            if (checkProgram(old.pid).alive) this.stopMongos(n);
            const { restart, ...fresh } = given || {};
            const options = given === undefined || restart
                ? { ...old.fullOptions, ...fresh }
                : { configdb: this._configDB, useHostname: this._useHostname, port: old.ownPort ?? old.port, ...fresh };
            const server = this._launchRouter(n, MongoRunner.mongosOptions(options));
            const unawaited = server.fullOptions.waitForConnect === false;
            return this._takeRouter(n, unawaited ? server : MongoRunner._connectTo(server, undefined, this._routerBridges[n]));
        }
        restartConfigServer(n, given, signal, wait = true) {
            this.configRS.restart(n, given || {}, signal, wait);
            this._reconnect(this.configRS);
        }
        restartShardRS(n, given, signal, wait = true) {
            const test = this._rs[n].test;
            test.nodes.forEach((_, i) => test.restart(i, given || {}, signal, wait));
            this._reconnect(test);
        }
        // Starts, on their data, the config servers that `stopAllConfigServers` has stopped.
        startConfigServers(given) {
            this._startAgain(this.configRS, given);
        }
        restartAllConfigServers(given) {
            this.configRS.stop(this.configRS._live());
            this.startConfigServers(given);
        }
        restartAllShards(given) {
            this._rs.forEach(({ test }) => test.stop(test._live()));
            this._rs.forEach(({ test }) => this._startAgain(test, given));
        }
        _startAgain(test, given) {
            test.startSet(given, true);
            this._reconnect(test);
        }
        // Takes the new connections of a set that has been started again.
        _reconnect(test) {
            test.awaitNodesAgreeOnPrimary();
            if (test === this.configRS) {
                this._configServers = test.nodes;
                this._nameConfig();
            }
            this._rs.forEach((entry, i) => {
                entry.nodes = entry.test.nodes;
                if (entry.test === test) this._connectShard(i, this._connections[i].shardName);
            });
        }
        stopConfigServer(n, given) {
            this.configRS.stop(n, undefined, given);
        }
        stopAllConfigServers(given, forRestart) {
            this.configRS.stopSet(undefined, forRestart, given);
        }
        stopAllShards(given, forRestart) {
            this._rs.forEach(({ test }) => test.stopSet(undefined, forRestart, given));
        }
        stopAllMongos(given) {
            MongoRunner._stopTogether(this._livingRouters(), undefined, given);
        }
        killAllMongos() {
            MongoRunner._stopTogether(this._livingRouters(), 9);
        }
        _livingRouters() {
            return (this._mongos || []).filter((conn) => conn && checkProgram(conn.pid).alive);
        }
        awaitReplicationOnShards() {
            this._rs.forEach(({ test }) => test.awaitReplication());
        }
        sync() {}
        refreshCatalogCacheForNs(node, ns) {
            assert.commandWorked(node.adminCommand({ flushRouterConfig: ns }));
        }

        // ---- ending ----

        // Runs the checks that no flag leaves out, then ends all processes. What failed is thrown after everything ended.
        stop(given = {}) {
            const failures = [];
            const attempt = (what) => {
                try {
                    what();
                } catch (error) {
                    failures.push(error);
                }
            };
            attempt(() => this._check(given));
            attempt(() => this.stopAllMongos(given));
            attempt(() => MongoRunner._stopTogether(this._livingNodes(), undefined, given));
            this._connections.concat(this._mongos).forEach((conn) => closed(conn));
            this._sets().forEach((test) => test._stopBridges());
            this._routerBridges.forEach((bridge) => bridge.stop());
            if (!given.noCleanData) this._sets().forEach((test) => test.cleanData());
            if (failures.length > 0) throw failures[0];
        }
        _livingNodes() {
            const nodes = this._sets().flatMap((test) => test.nodes);
            return nodes.filter((node) => node && node.pid !== undefined && checkProgram(node.pid).alive);
        }
        _check(given) {
            if (given.skipChecks || this.s === undefined) return;
            const wanted = ClusterChecks.names.filter((name) => !ClusterChecks.isSkipped(name, given));
            if (wanted.length === 0) return;
            const expected = this._sets().reduce((n, test) => n + test.nodes.length, 0);
            const router = this._livingRouters()[0];
            if (router === undefined || this._livingNodes().length < expected) {
                print(`ShardingTest: no consistency checks (${wanted.join(", ")}): a node has been stopped and not started again`);
                return;
            }
            ClusterChecks.all(router, given);
        }
    }

    for (const name of ClusterChecks.names) {
        ShardingTest.prototype[name] = function (given) {
            if (!ClusterChecks.isSkipped(name, given)) ClusterChecks.run(name, this.s, given);
        };
    }

    function nameOf(one) {
        return typeof one === "string" ? one : one.shardName || one.name || one.host;
    }
    function closed(conn) {
        try {
            if (conn && typeof conn.close === "function") conn.close();
        } catch (error) {
            // The peer is gone already.
        }
    }
    function positionalParameters(name, shards, verbose, mongos, other) {
        return { name, shards, verbose, mongos, other };
    }

    // Older tests call it without `new`.
    globalThis.ShardingTest = new Proxy(ShardingTest, { apply: (target, self, given) => new target(...given) });
})();
