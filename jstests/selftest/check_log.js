/**
 * checkLog finds lines of a server's log by text and by their members.
 * It fails if a line with another attribute passes, or if a wait ends without the line.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod();
const port = conn.port;
// It takes connections a moment before it says so.
checkLog.containsJson(conn, 23016, { port });
assert(checkLog.checkContainsOnce(conn, "Waiting for connections"));
assert(!checkLog.checkContainsOnce(conn, "a line that nobody has written"));
assert(checkLog.checkContainsOnceJson(conn, 23016, { port }));
assert(checkLog.checkContainsOnceJson(conn, 23016, { port: (value) => value === port, ssl: /^o/ }, "I"));
assert(!checkLog.checkContainsOnceJson(conn, 23016, { port: port + 1 }));
assert(!checkLog.checkContainsOnceJson(conn, 23016, { nothing: 1 }));
assert(!checkLog.checkContainsOnceJson(conn, 23016, {}, "E"));
assert(checkLog.checkContainsWithCountJson(conn, 23016, {}, 1));
assert.eq("Waiting for connections", checkLog.getFilteredLogMessages(conn, 23016)[0].msg);

const id = 23435;
assert(!checkLog.checkContainsOnceJson(conn, id, {}));
const later = new Thread((host) => {
    sleep(50);
    assert.commandWorked(new Mongo(host).adminCommand({ setParameter: 1, logLevel: 0 }));
}, conn.host);
later.start();
checkLog.containsJson(conn, id, { parameterName: "logLevel" });
later.join();
checkLog.containsWithCount(conn, /Successfully set parameter/, 1);
assert.throws(() => checkLog.contains(conn, "a line that nobody has written", 100));
MongoRunner.stopMongod(conn);
