// Fail points of a server: `configureFailPoint` sets one and returns the object that waits for it and takes it back.
//
// The reply of configureFailPoint says how often the point had been entered before; waits count from there, so that a
// point which an earlier part of the test entered does not end a wait at once.

(function () {
    const kDefaultWaitForFailPointTimeout = 10 * 60 * 1000;

    const adminOf = (conn) => (typeof conn.getSiblingDB === "function" ? conn.getSiblingDB("admin") : conn.getDB("admin"));

    class FailPoint {
        constructor(conn, failPointName, timesEntered) {
            this.conn = conn;
            this.failPointName = failPointName;
            this.timesEntered = Number(timesEntered);
        }
        // Waits until the point was entered `timesEntered` times since it was set.
        wait(given = {}) {
            const { maxTimeMS, timesEntered = 1 } = typeof given === "number" ? { maxTimeMS: given } : given;
            return assert.commandWorked(this._await(maxTimeMS ?? kDefaultWaitForFailPointTimeout, timesEntered));
        }
        // As `wait`, but a wait that runs out of time returns false.
        waitWithTimeout(maxTimeMS, timesEntered = 1) {
            const reply = this._await(maxTimeMS, timesEntered);
            if (!reply.ok && reply.code === ErrorCodes.MaxTimeMSExpired) return false;
            assert.commandWorked(reply);
            return true;
        }
        _await(maxTimeMS, timesEntered) {
            return adminOf(this.conn).runCommand({
                waitForFailPoint: this.failPointName,
                timesEntered: NumberLong(String(this.timesEntered + Number(timesEntered))),
                maxTimeMS,
            });
        }
        off() {
            return assert.commandWorked(
                adminOf(this.conn).runCommand({ configureFailPoint: this.failPointName, mode: "off" }));
        }
    }

    function configureFailPoint(conn, failPointName, data = {}, mode = "alwaysOn") {
        const reply = assert.commandWorked(adminOf(conn).runCommand({ configureFailPoint: failPointName, mode, data }));
        return new FailPoint(conn, failPointName, reply.count);
    }

    // As configureFailPoint; undefined from a server that does not have the point or the command.
    function configureFailPointWithRetries(conn, failPointName, data = {}, mode = "alwaysOn") {
        let point;
        assert.soon(() => {
            const reply = adminOf(conn).runCommand({ configureFailPoint: failPointName, mode, data });
            if (reply.ok) point = new FailPoint(conn, failPointName, reply.count);
            return reply.ok === 1;
        }, `could not configure fail point ${failPointName}`);
        return point;
    }

    // The same point on every node; waiting waits for any of them (`wait`), taking back takes back all.
    function configureFailPointForRS(conns, failPointName, data = {}, mode = "alwaysOn") {
        const points = conns.map((conn) => configureFailPoint(conn, failPointName, data, mode));
        return {
            points,
            conns,
            failPointName,
            wait(given) {
                const { maxTimeMS = kDefaultWaitForFailPointTimeout, timesEntered = 1 } = given || {};
                const slice = Math.max(50, Math.floor(250 / points.length));
                assert.soon(() => points.some((point) => point.waitWithTimeout(slice, timesEntered)),
                    `no node entered fail point ${failPointName}`, maxTimeMS);
            },
            off() {
                points.forEach((point) => point.off());
            },
        };
    }

    Object.assign(globalThis, {
        FailPoint, configureFailPoint, configureFailPointWithRetries, configureFailPointForRS,
        kDefaultWaitForFailPointTimeout,
    });
})();
