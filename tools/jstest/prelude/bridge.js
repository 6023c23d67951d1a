// MongoBridge: a proxy before one server, by which a test cuts, delays or loses what other servers send to it.
//
//   new MongoBridge({dest: "host:port", port?, hostName?, seed?, verbose?}) -> connectToBridge(): a connection through it -> stop()
//
// The program (shell/bridge.rs) knows its peers by the address they listen on themselves, the `dest` of their own bridges. The fixtures
// of sets and clusters put one before each node when `useBridge` is asked for; a node's connection then has the methods below.

(function () {
    const RULES = {
        acceptConnectionsFrom: () => ({}),
        rejectConnectionsFrom: () => ({}),
        // Milliseconds.
        delayMessagesFrom: (delay) => ({ delay: Number(delay) }),
        // A probability.
        discardMessagesFrom: (loss) => ({ loss: Number(loss) }),
    };
    const listOf = (others) => (Array.isArray(others) ? others : [others]);

    // What a connection through a bridge can do to the requests that come to its server. Each takes another node or a list of them.
    const METHODS = {
        disconnect(others) {
            this.rejectConnectionsFrom(others);
            listOf(others).forEach((other) => other.rejectConnectionsFrom(this));
        },
        reconnect(others) {
            this.acceptConnectionsFrom(others);
            listOf(others).forEach((other) => other.acceptConnectionsFrom(this));
        },
    };
    for (const [name, argument] of Object.entries(RULES)) {
        METHODS[name] = function (others, value) {
            for (const other of listOf(others)) {
                if (typeof other?.dest !== "string") throw new Error(`${name}: the other node has no bridge: ${tojsononeline(other)}`);
                const command = { [name]: 1, $forBridge: true, host: other.dest, ...argument(value) };
                assert.commandWorked(this.getDB("admin").runCommand(command), `${name} ${other.dest} on the bridge before ${this.dest}`);
            }
        };
    }

    class MongoBridge {
        constructor(given = {}) {
            if (typeof given.dest !== "string") throw new Error("a bridge needs the address of its server: dest");
            this.hostName = given.hostName || getHostName();
            this.dest = given.dest;
            this.port = Number(given.port || MongoRunner.allocatePort());
            this.host = `${this.hostName}:${this.port}`;
            const args = ["mongobridge", "--port", this.port, "--dest", this.dest];
            if (given.seed !== undefined) args.push("--seed", given.seed);
            if (given.verbose) args.push("--verbose");
            this.pid = startMongoProgramNoConnect(...args);
        }
        // Waits until the server answers through the bridge. Returns the connection, which has the methods of a bridged node.
        connectToBridge() {
            const connection = MongoRunner.awaitConnection({ pid: this.pid, port: this.port, host: this.host });
            return this._dress(connection);
        }
        _dress(connection) {
            return Object.assign(connection, METHODS, { dest: this.dest, bridge: this });
        }
        stop() {
            return Number(_stopMongoProgram(this.port, 15, {}, true));
        }
    }

    globalThis.MongoBridge = MongoBridge;
})();
