/**
 * A test holds an operation at a named place, finds it in currentOp of the router and ends it there: without that, races
 * could only be waited for.
 * Fails when a fail point does not hold the find, when the router's currentOp leaves out the shards or the place
 * (`failpointMsg`), or when killOp of "shard:opid" does not reach the shard.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardConnection, shardNames} from "jstests/sharding/libs/cluster.js";

const [first] = shardNames(db);
const testDB = freshDatabase(db, "held_operations", first);
assert.commandWorked(testDB.c.insert([{_id: 1}, {_id: 2}]));
const shard = shardConnection(db, first);
const host = db.getMongo().host;

function find(point) {
    return startParallelShell(
        funWithArgs(
            (name, at) => {
                const reply = db.getSiblingDB(name).runCommand({find: "c", filter: {x: {$ne: 5}}, comment: at});
                assert.commandFailedWithCode(reply, ErrorCodes.Interrupted);
            },
            testDB.getName(),
            point,
        ),
        db.getMongo().port,
    );
}

for (const point of ["waitInFindBeforeMakingBatch", "setYieldAllLocksHang"]) {
    const held = configureFailPoint(shard, point, {nss: testDB.c.getFullName()});
    // Another collection's reads pass.
    assert.eq(null, testDB.other.findOne());
    const join = find(point);
    held.wait();
    let operation;
    assert.soon(() => {
        const all = assert.commandWorked(db.adminCommand({currentOp: 1, failpointMsg: point})).inprog;
        operation = all[0];
        return all.length === 1;
    }, () => tojson(db.adminCommand({currentOp: 1}).inprog));
    assert.eq(first, operation.shard);
    assert.eq(testDB.c.getFullName(), operation.ns);
    assert(new RegExp(`^${first}:\\d+$`).test(operation.opid), tojson(operation));
    assert.commandFailedWithCode(db.adminCommand({killOp: 1, op: "nonsense"}), ErrorCodes.BadValue);
    assert.commandWorked(db.adminCommand({killOp: 1, op: operation.opid}));
    join();
    held.off();
}
assert.eq(2, testDB.c.find().itcount());

// What no place asks about is refused, and so is a wait that could have no end.
assert.commandFailedWithCode(shard.adminCommand({configureFailPoint: "noSuchPlace", mode: "alwaysOn"}), 266);
assert.commandFailedWithCode(shard.adminCommand({waitForFailPoint: "failCommand", timesEntered: 1}), 40414);
