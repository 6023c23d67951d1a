/**
 * Drivers wait for changes of the topology through hello instead of asking again and again.
 * Fails when an awaiting hello answers at once though nothing changed, waits longer than asked, or takes half of its arguments.
 */
const hello = assert.commandWorked(db.runCommand({hello: 1}));
const version = hello.topologyVersion;
assert(version.processId instanceof ObjectId);

const begin = Date.now();
const waited = assert.commandWorked(db.runCommand({hello: 1, topologyVersion: version, maxAwaitTimeMS: 500}));
const took = Date.now() - begin;
assert.lte(450, took);
assert.lt(took, 20 * 1000);
assert.eq(version, waited.topologyVersion);

// Another process's version is answered at once.
const other = {processId: ObjectId(), counter: NumberLong(0)};
const quick = Date.now();
assert.eq(version, assert.commandWorked(db.runCommand({hello: 1, topologyVersion: other, maxAwaitTimeMS: 60 * 1000})).topologyVersion);
assert.lt(Date.now() - quick, 30 * 1000);

assert.commandFailedWithCode(db.runCommand({hello: 1, topologyVersion: version}), [51759, 31368]);
assert.commandFailedWithCode(db.runCommand({hello: 1, maxAwaitTimeMS: 100}), [51759, 31368]);
assert.commandFailedWithCode(db.runCommand({hello: 1, topologyVersion: version, maxAwaitTimeMS: -1}), [31373, ErrorCodes.BadValue]);
// One that this process has not had yet.
const later = {processId: version.processId, counter: NumberLong(Number(version.counter) + 1000000)};
assert.commandFailedWithCode(db.runCommand({hello: 1, topologyVersion: later, maxAwaitTimeMS: 60 * 1000}), [31382, 51761, 51764]);
assert.commandFailedWithCode(db.runCommand({hello: 1, topologyVersion: 1, maxAwaitTimeMS: 1}), ErrorCodes.TypeMismatch);
// A client says who it is once.
const metadata = {driver: {name: "d", version: "1"}, os: {type: "Linux"}};
assert.commandFailedWithCode(db.runCommand({hello: 1, client: metadata}), ErrorCodes.ClientMetadataCannotBeMutated);
