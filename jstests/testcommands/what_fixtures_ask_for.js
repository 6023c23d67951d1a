/**
 * Fixtures that start sets and clusters ask for these before any test runs; a refusal keeps all their tests from starting.
 * Fails when admin.system.keys does not come to hold a key in force and the next, in the form that drivers' and other nodes' tools read,
 * when a fail point that is set on every member is unknown, or when the configuration is refused with members that are being added.
 *
 * @tags: [requires_replication]
 */
const routed = db.hello().msg === "isdbgrid";
const keys = db.getSiblingDB("admin").system.keys;
assert.soon(() => keys.find().itcount() === 2, () => tojson(keys.find().toArray()));
const [first, second] = keys.find({purpose: "HMAC"}).sort({expiresAt: 1}).toArray();
for (const key of [first, second]) {
    assert.eq(["_id", "purpose", "key", "expiresAt"], Object.keys(key));
    assert(key._id instanceof NumberLong);
    assert.eq(40, key.key.hex().length);
    assert(key.expiresAt instanceof Timestamp);
}
const period = 90 * 24 * 60 * 60;
assert.eq(period, second.expiresAt.getTime() - first.expiresAt.getTime());
assert.gt(first.expiresAt.getTime(), Date.now() / 1000 + period - 24 * 60 * 60);

const config = routed ? new Mongo(db.adminCommand({getShardMap: 1}).map.config.split("/")[1]) : db.getMongo();
for (const name of ["skipOplogBatcherWaitForData", "forceSyncSourceRetryWaitForInitialSync"]) {
    for (const mode of ["alwaysOn", "off"]) {
        assert.commandWorked(config.adminCommand({configureFailPoint: name, mode}));
    }
}
const shown = assert.commandWorked(config.adminCommand({replSetGetConfig: 1, $_internalIncludeNewlyAdded: true}));
assert.eq(1, shown.config.members.length);
const parameter = assert.commandWorked(config.adminCommand({getParameter: 1, numInitialSyncConnectAttempts: 1}));
assert.eq(10, parameter.numInitialSyncConnectAttempts);
