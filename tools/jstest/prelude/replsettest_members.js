// Who is who in a ReplSetTest: states, elections, agreement of the members.

(function () {
    const { State } = ReplSetTest;
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

    _defineMethods(ReplSetTest.prototype, {
        _patiently: patiently,
        _soon(condition, message, timeout = this.timeoutMS) {
            assert.soon(condition, message, timeout, 5);
        },
        _hello(node) {
            return patiently(() => admin(node, { hello: 1 }));
        },
        _live() {
            return this.nodes.filter((node) => node && isConnection(node) && (node.pid === undefined || checkProgram(node.pid).alive));
        },
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
        },
        callIsMaster() {
            return this.callHello();
        },
        getPrimary(timeout) {
            this._soon(() => Boolean(this.callHello()), () => `no primary in ${this.name}: ${tojsononeline(this._states())}`, timeout);
            return this._primary;
        },
        getMaster(timeout) {
            return this.getPrimary(timeout);
        },
        each(fn) {
            this.nodes.forEach(fn);
        },
        getSecondaries() {
            const primary = this.getPrimary();
            return this._live().filter((node) => node !== primary);
        },
        getSecondary() {
            return this.getSecondaries()[0];
        },
        // The other members that have data.
        _holders() {
            return this.getSecondaries().filter((node) => !this._hello(node).arbiterOnly);
        },
        getArbiters() {
            return this._live().filter((node) => this._hello(node).arbiterOnly === true);
        },
        getArbiter() {
            return this.getArbiters()[0];
        },
        waitForPrimary(timeout) {
            return this.getPrimary(timeout);
        },
        awaitSecondaryNodes(timeout, nodes) {
            this._soon(() => {
                const primary = this.callHello();
                const wanted = nodes || this._live().filter((node) => node !== primary);
                return wanted.every((node) => this._secondaries.includes(node));
            }, `the other members of ${this.name} are not secondaries`, timeout);
        },
        awaitNodesAgreeOnPrimary(timeout, nodes = this._live(), expected) {
            const wanted = expected === undefined ? undefined : this.nodeList()[this.getNodeId(expected)];
            const names = () => new Set(nodes.map((node) => this._hello(node).primary));
            this._soon(() => {
                const [first, ...others] = names();
                return others.length === 0 && first !== undefined && (wanted === undefined || wanted === first);
            }, `the members of ${this.name} do not agree on a primary`, timeout);
        },
        awaitNodesAgreeOnPrimaryNoAuth(timeout, nodes, expected) {
            this.awaitNodesAgreeOnPrimary(timeout, nodes, expected);
        },
        awaitNodesAgreeOnConfigVersion(timeout, nodes = this._live()) {
            this._soon(() => new Set(nodes.map((node) => Number(this._hello(node).setVersion))).size === 1,
                `the members of ${this.name} do not agree on a configuration`, timeout);
        },
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
        },
        awaitRSClientHosts(conn, hosts, hostOk, rs, timeout) {
            globalThis.ReplSetTest.awaitRSClientHosts(conn, hosts, hostOk, rs, timeout);
        },
        _states() {
            return this._live().map((node) => {
                try {
                    const reply = admin(node, { replSetGetStatus: 1 });
                    return { host: node.host, state: reply.ok ? reply.myState : reply.codeName };
                } catch (error) {
                    return { host: node.host, error: error.message };
                }
            });
        },
        status(timeout) {
            let reply;
            this._soon(() => {
                reply = patiently(() => admin(this._live()[0], { replSetGetStatus: 1 }));
                return reply.ok;
            }, "no member tells its status", timeout);
            return reply;
        },
        getStateOf(node) {
            const reply = admin(node, { replSetGetStatus: 1 });
            // A member that was removed refuses, and tells its state all the same.
            return reply.ok ? reply.myState : reply.state;
        },
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
        },
        waitForHealth(n, timeout) {
            const id = this.getNodeId(n);
            this._soon(() => {
                const hello = this._hello(this.nodes[id]);
                return hello.isWritablePrimary || hello.secondary || hello.arbiterOnly || hello.isreplicaset;
            }, `node ${id} of ${this.name} is not healthy`, timeout);
        },
        getHealth() {
            return this.status().members.map((member) => member.health);
        },

        stepUp(node, { awaitReplicationBeforeStepUp = true, awaitWritablePrimary = true } = {}) {
            const conn = this.node(node);
            if (awaitReplicationBeforeStepUp) this.awaitReplication();
            this._soon(() => {
                const reply = admin(conn, { replSetStepUp: 1 });
                return reply.ok || this._hello(conn).isWritablePrimary;
            }, `${conn.host} does not step up`);
            if (awaitWritablePrimary) this._soon(() => this._hello(conn).isWritablePrimary, `${conn.host} takes no writes`);
            return conn;
        },
        stepUpNoAwaitReplication(node) {
            return this.stepUp(node, { awaitReplicationBeforeStepUp: false });
        },
        freeze(node, seconds = 24 * 60 * 60) {
            return assert.commandWorked(admin(this.node(node), { replSetFreeze: seconds }));
        },
        unfreeze(node) {
            return assert.commandWorked(admin(this.node(node), { replSetFreeze: 0 }));
        },
        // Waits until the primary's configuration is of its term, and what it wrote when it was elected is on every member.
        waitForStepUpWrites(primary = this.getPrimary()) {
            this._soon(() => {
                const { term } = admin(primary, { replSetGetStatus: 1 });
                const config = this.getReplSetConfigFromNode(primary);
                return this._hello(primary).isWritablePrimary && Number(config.term) === Number(term);
            }, () => `${primary.host} has not finished stepping up: ${tojsononeline(this._states())}`);
            this.awaitLastOpCommitted();
        },
        // Waits until no member is without its vote for having been added just now.
        waitForAllNewlyAddedRemovals(timeout) {
            this._soon(() => !this.getReplSetConfigFromNode(this.getPrimary()).members.some((member) => member.newlyAdded),
                `members of ${this.name} are still newly added`, timeout);
        },
        // Waits until a member copies its oplog from another.
        awaitSyncSource(node, source, timeout) {
            const wanted = this.nodeList()[this.getNodeId(source)];
            let found;
            this._soon(() => {
                found = assert.commandWorked(admin(this.node(node), { replSetGetStatus: 1 })).syncSourceHost;
                return found === wanted;
            }, () => `${this.node(node).host} copies from '${found}', not from ${wanted}`, timeout);
        },
    });
})();
