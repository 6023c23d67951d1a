/**
 * Sets of several members are not there yet: the server must say so with its own code instead of pretending to replicate.
 * It fails if a configuration with two members is taken while nothing is replicated, or is refused as a mistake.
 *
 * @tags: [requires_own_servers]
 */
const conn = MongoRunner.runMongod({replSet: "several"});
const other = MongoRunner.runMongod({replSet: "several"});
const two = {_id: "several", members: [{_id: 0, host: conn.host}, {_id: 1, host: other.host}]};
let reply = conn.adminCommand({replSetInitiate: two});
assert.commandFailedWithCode(reply, 238);
assert.eq("NotImplemented", reply.codeName);
assert.commandFailedWithCode(conn.adminCommand({replSetGetStatus: 1}), 94);

assert.commandWorked(conn.adminCommand({replSetInitiate: {_id: "several", members: [two.members[0]]}}));
assert.soon(() => conn.adminCommand({hello: 1}).isWritablePrimary);
reply = conn.adminCommand({replSetReconfig: Object.assign({version: 2}, two)});
assert.commandFailedWithCode(reply, 238);
assert.eq(1, conn.adminCommand({replSetGetConfig: 1}).config.members.length);
assert.eq(1, conn.adminCommand({replSetGetStatus: 1}).members.length);

// The fixture says the same instead of waiting for members that never come.
const error = assert.throws(() => {
    const rst = new ReplSetTest({nodes: 3});
    try {
        rst.startSet();
        rst.initiate();
    } finally {
        rst.stopSet();
    }
});
assert(/238|NotImplemented|one member|several members/i.test(error.toString()), error.toString());
MongoRunner.stopMongod(conn);
MongoRunner.stopMongod(other);
