/**
 * A fail point set through the helper is seen being entered, however often it was entered before, and is taken back.
 * It fails if a wait is ended by an entrance from before the point was set, or if `off` leaves it on.
 *
 * @tags: [requires_own_servers]
 */
import { configureFailPoint, configureFailPointForRS } from "jstests/libs/fail_point_util.js";

const conn = MongoRunner.runMongod();
const data = { failCommands: ["ping"], errorCode: ErrorCodes.HostUnreachable };
const ping = () => conn.adminCommand({ ping: 1 });

const point = configureFailPoint(conn, "failCommand", data);
assert.eq([conn, "failCommand", 0], [point.conn, point.failPointName, point.timesEntered]);
assert.eq(false, point.waitWithTimeout(20), "nobody came");
assert.commandFailedWithCode(ping(), ErrorCodes.HostUnreachable);
point.wait();
point.off();
assert.commandWorked(ping());

const again = configureFailPoint(conn.getDB("test"), "failCommand", data, { times: 2 });
assert.eq(1, again.timesEntered);
assert.eq(false, again.waitWithTimeout(20), "an earlier entrance does not count");
assert.commandFailed(ping());
assert.eq(false, again.waitWithTimeout(20, 2));
assert.commandFailed(ping());
again.wait({ timesEntered: 2 });
assert.commandWorked(ping(), "two times only");
assert.throws(() => configureFailPoint(conn, "failCommand", data, "sometimes"));

const everywhere = configureFailPointForRS([conn], "failCommand", data);
assert.commandFailed(ping());
everywhere.wait();
everywhere.off();
assert.commandWorked(ping());
MongoRunner.stopMongod(conn);
