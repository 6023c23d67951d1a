// What the members of a ReplSetTest have: replication of it, and comparison of the members.

(function () {
    const { OpTimeType } = ReplSetTest;
    const testData = () => globalThis.TestData || {};
    const admin = (node, command) => node.getDB("admin").runCommand(command);

    _defineMethods(ReplSetTest.prototype, {
        _optimes(node) {
            // A member that rolls back closes its connections, and is connected to anew.
            return assert.commandWorked(this._patiently(() => admin(node, { replSetGetStatus: 1 }))).optimes;
        },
        getReadConcernMajorityOpTime(node) {
            return this._optimes(node).readConcernMajorityOpTime;
        },
        getReadConcernMajorityOpTimeOrThrow(node) {
            const optime = this.getReadConcernMajorityOpTime(node);
            assert(rs.isValidOpTime(optime), () => `${node.host} has nothing that a majority has: ${tojsononeline(optime)}`);
            return optime;
        },
        // Waits until all (or the given) members have applied what the primary has.
        awaitReplication(timeout, type = OpTimeType.LAST_APPLIED, secondaries) {
            const primary = this.getPrimary();
            const field = type === OpTimeType.LAST_DURABLE ? "durableOpTime" : "appliedOpTime";
            const wanted = this._optimes(primary).appliedOpTime;
            const others = secondaries || this._holders();
            this._soon(() => others.every((node) => rs.compareOpTimes(this._optimes(node)[field], wanted) >= 0),
                `members of ${this.name} lag behind ${tojsononeline(wanted)}`, timeout);
        },
        awaitLastOpCommitted(timeout, members = this._live()) {
            const wanted = this._optimes(this.getPrimary()).appliedOpTime;
            this._soon(() => members.every((node) => rs.compareOpTimes(this._optimes(node).lastCommittedOpTime, wanted) >= 0),
                `${tojsononeline(wanted)} is not committed on every member of ${this.name}`, timeout);
            return wanted;
        },
        awaitLastStableRecoveryTimestamp() {
            const primary = this.getPrimary();
            assert.commandWorked(admin(primary, { appendOplogNote: 1, data: { awaitLastStableRecoveryTimestamp: 1 } }));
            this.awaitLastOpCommitted();
            this._live().forEach((node) => assert.commandWorked(admin(node, { fsync: 1 })));
        },
        awaitNodesAgreeOnAppliedOpTime(timeout, nodes = this._live()) {
            this._soon(() => {
                const [first, ...others] = nodes.map((node) => this._optimes(node).appliedOpTime);
                return others.every((other) => rs.compareOpTimes(first, other) === 0);
            }, `members of ${this.name} do not agree on the applied time`, timeout);
        },
        getLastOpTimeWritten(node) {
            return this.findOplog(node, {}, 1).toArray()[0];
        },
        // Oplog entries that match, newest first.
        findOplog(conn, query, limit) {
            return conn.getDB("local").getCollection("oplog.rs").find(query).sort({ $natural: -1 }).limit(limit || 0);
        },
        dumpOplog(conn, query = {}, limit = 10) {
            print(`the oplog of ${conn.host}:\n` + this.findOplog(conn, query, limit).toArray().map(tojsononeline).join("\n"));
        },
        // Writes until the first entry of a node's oplog has been dropped from it.
        overflow() {
            throw new Error("overflow: the oplog of these servers does not drop entries by size");
        },

        // ---- comparing the members ----

        // What dbHash says of a database in each of the sessions: of its present state only.
        getHashesUsingSessions(sessions, dbName, { readAtClusterTime } = {}) {
            if (readAtClusterTime) throw new Error("getHashesUsingSessions: dbHash of these servers does not look into the past");
            return sessions.map((session) => assert.commandWorked(session.getDatabase(dbName).runCommand({ dbHash: 1 })));
        },
        getHashes(dbName, nodes = [this.getPrimary(), ...this._holders()]) {
            const sessions = nodes.map((node) => node.getDB(dbName).getSession());
            const [primary, ...secondaries] = this.getHashesUsingSessions(sessions, dbName);
            return { primary, secondaries };
        },
        _databases(excluded) {
            const { databases } = assert.commandWorked(admin(this.getPrimary(), { listDatabases: 1, nameOnly: true }));
            return databases.map((d) => d.name).filter((name) => name !== "local" && !excluded.includes(name));
        },
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
        },
        checkOplogs(prefix = "checkOplogs") {
            const others = this._holders();
            const tail = (node) => this.findOplog(node, {}, 100).toArray().map((entry) => entry.ts);
            const wanted = others.length > 0 ? tail(this.getPrimary()) : [];
            others.forEach((node) => assert.eq(wanted, tail(node), `${prefix}: the oplog of ${node.host} differs`));
        },
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
        },
        // Every member has recorded the same documents from before their changes.
        checkPreImageCollection(prefix = "checkPreImageCollection") {
            const others = this._holders();
            if (others.length === 0) return;
            this.awaitReplication();
            const recorded = (node) => node.getDB("config").getCollection("system.preimages").find().sort({ _id: 1 })
                .readPref("secondaryPreferred").toArray();
            const wanted = recorded(this.getPrimary());
            others.forEach((node) => assert.eq(wanted, recorded(node), `${prefix}: config.system.preimages differs on ${node.host}`));
        },
        // Waits until no data-bearing member is building an index of the collection.
        waitForAllIndexBuildsToFinish(dbName, collName) {
            const nodes = [this.getPrimary(), ...this._holders()];
            const building = { "command.createIndexes": collName, "command.$db": dbName };
            const inProgress = (node) => assert.commandWorked(admin(node, { currentOp: 1, ...building })).inprog;
            this._soon(() => nodes.every((node) => inProgress(node).length === 0),
                `members of ${this.name} are still building indexes of ${dbName}.${collName}`);
            this.awaitReplication();
        },
    });
})();
