/**
 * Small commands that tests and shells send everywhere answer as the real server's: checksums, pools, plan cache, flags.
 * Fails when one is unknown, takes what it should refuse, or when the checksum of a collection depends on anything but
 * its documents.
 */
const name = "small_commands";
const coll = db.getCollection(name);
coll.drop();
assert.commandWorked(coll.insert([{_id: 1, x: 1}, {_id: 2}]));

assert.eq({echo: 1, x: "y"}, (({echo, x}) => ({echo, x}))(assert.commandWorked(db.runCommand({echo: 1, x: "y"})).echo));
assert.eq("", assert.commandWorked(db.adminCommand({whatsmysni: 1})).sni);
assert.commandWorked(db.runCommand({logout: 1}));
assert.commandFailedWithCode(db.runCommand({createSearchIndexes: name, indexes: []}), 31082);

// A sleep takes its time and can be cut short.
let begun = Date.now();
assert.commandWorked(db.adminCommand({sleep: 1, millis: 100}));
assert.gte(Date.now() - begun, 100);
assert.commandFailedWithCode(db.adminCommand({sleep: 1, secs: 60, maxTimeMS: 20}), ErrorCodes.MaxTimeMSExpired);

// Connections of a node to others.
const pools = assert.commandWorked(db.adminCommand({connPoolStats: 1}));
assert.eq("object", typeof pools.hosts, tojson(pools));
assert.gte(pools.totalCreated, 0);
assert.commandWorked(db.adminCommand({connPoolSync: 1}));
assert.commandWorked(db.adminCommand({dropConnections: 1, hostAndPort: ["localhost:1"]}));
assert.commandFailedWithCode(db.adminCommand({dropConnections: 1}), 40414);

// Plans are not kept, so there is nothing to clear.
assert.commandWorked(db.runCommand({planCacheClear: name}));
assert.commandWorked(db.runCommand({planCacheClear: name, query: {x: 1}, sort: {x: 1}}));
assert.commandWorked(db.runCommand({validateDBMetadata: 1, apiParameters: {version: "1", strict: true}}));

// Flags of features say whether they are on and since when; a name that is none is no parameter.
const flag = assert.commandWorked(db.adminCommand({getParameter: 1, featureFlagBulkWriteCommand: 1})).featureFlagBulkWriteCommand;
assert.eq(true, flag.value);
assert.eq("8.0", flag.version);
assert.commandFailed(db.adminCommand({getParameter: 1, featureFlagOfNobody: 1}));

// Checksums, where there is data.
const isRouter = assert.commandWorked(db.hello()).msg === "isdbgrid";
if (isRouter) {
    assert.commandFailedWithCode(db.runCommand({dbHash: 1}), ErrorCodes.CommandNotFound);
} else {
    const other = db.getCollection(name + "_other");
    other.drop();
    assert.commandWorked(other.insert([{_id: 2}, {_id: 1, x: 1}]));
    const sums = () => assert.commandWorked(db.runCommand({dbHash: 1, collections: [name, other.getName()]}));
    let now = sums();
    assert.eq(now.collections[name], now.collections[other.getName()]);
    assert.eq(32, now.md5.length);
    assert.commandWorked(other.update({_id: 2}, {$set: {x: 2}}));
    assert.neq(now.md5, sums().md5);
    assert.eq(now.collections[name], sums().collections[name]);
    // The hash of a value is that of hashed indexes.
    const hashed = assert.commandWorked(db.adminCommand({_hashBSONElement: 5, seed: 0}));
    assert.eq(convertShardKeyToHashed(5), hashed.out);
    assert.eq(5, hashed.key);
}
