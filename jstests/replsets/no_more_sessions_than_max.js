/**
 * A server has at most `maxSessions` sessions in use between two refreshes, and refuses more by a code of their own. What is in use goes on.
 * It fails if the parameter has no effect, if a session that is in use is refused, or if an end makes no room.
 *
 * @tags: [requires_own_servers]
 */
const most = 20;
const conn = MongoRunner.runMongod({setParameter: {maxSessions: most, disableLogicalSessionCacheRefresh: true}});
const test = conn.getDB("test");
assert.commandWorked(test.c.insert({_id: 1}));

const started = [];
let reply;
do {
    reply = test.adminCommand({startSession: 1});
    started.push(reply.id);
} while (reply.ok && started.length <= most);
assert.commandFailedWithCode(reply, ErrorCodes.TooManyLogicalSessions);
started.pop();
assert.eq(most, assert.commandWorked(test.adminCommand({serverStatus: 1})).logicalSessionRecordCache.activeSessionsCount);

const find = (lsid) => test.runCommand({find: "c", lsid});
assert.commandFailedWithCode(find({id: UUID()}), ErrorCodes.TooManyLogicalSessions);
assert.commandFailedWithCode(test.adminCommand({refreshSessions: [{id: UUID()}]}), ErrorCodes.TooManyLogicalSessions);
// Those in use go on, and so does what needs no login.
assert.commandWorked(find(started[0]));
assert.commandWorked(test.adminCommand({refreshSessions: started}));
assert.commandWorked(test.runCommand({ping: 1, lsid: {id: UUID()}}));

assert.commandWorked(test.adminCommand({endSessions: started}));
assert.commandWorked(find({id: UUID()}));
MongoRunner.stopMongod(conn);
