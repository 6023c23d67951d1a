/**
 * While user writes are blocked a set serves reads and refuses what clients change, before and after a restart and an election.
 * It fails if a write or a change of the catalog passes, reads or the server's own collections are refused, or the block is forgotten.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 3, settings: {electionTimeoutMillis: 2000}});
rst.startSet();
rst.initiate();
let primary = rst.getPrimary();
let db = primary.getDB("user_writes");
assert.commandWorked(db.c.insert([{_id: 1, x: 1}, {_id: 2, x: 2}]));
assert.commandWorked(db.c.createIndex({x: 1}));
const set = (options) => primary.adminCommand(Object.assign({setUserWriteBlockMode: 1}, options));
const mode = (node) => node.getDB("admin").serverStatus().repl.userWriteBlockMode;
assert.eq(1, mode(primary));

const refused = {
    insert: {insert: "c", documents: [{_id: 3}]},
    update: {update: "c", updates: [{q: {_id: 1}, u: {$set: {x: 5}}}]},
    upsert: {update: "c", updates: [{q: {_id: 9}, u: {$set: {x: 5}}, upsert: true}]},
    delete: {delete: "c", deletes: [{q: {}, limit: 0}]},
    findAndModify: {findAndModify: "c", query: {_id: 1}, remove: true},
    out: {aggregate: "c", pipeline: [{$out: "other"}], cursor: {}},
    merge: {aggregate: "c", pipeline: [{$set: {x: 7}}, {$merge: "c"}], cursor: {}},
    create: {create: "made"},
    view: {create: "view", viewOn: "c", pipeline: []},
    createIndexes: {createIndexes: "c", indexes: [{key: {y: 1}, name: "y_1"}]},
    dropIndexes: {dropIndexes: "c", index: "x_1"},
    collMod: {collMod: "c", validator: {x: {$gt: 0}}},
    drop: {drop: "c"},
    convertToCapped: {convertToCapped: "c", size: 10000},
    dropDatabase: {dropDatabase: 1},
};
function blocked() {
    for (const [name, command] of Object.entries(refused)) {
        assert.commandFailedWithCode(db.runCommand(command), ErrorCodes.UserWritesBlocked, name);
    }
    const rename = {renameCollection: "user_writes.c", to: "user_writes.d"};
    assert.commandFailedWithCode(db.adminCommand(rename), ErrorCodes.UserWritesBlocked);
    const session = primary.startSession();
    session.startTransaction();
    const inside = session.getDatabase("user_writes").runCommand({insert: "c", documents: [{_id: 4}]});
    assert.commandFailedWithCode(inside, ErrorCodes.UserWritesBlocked);
    session.abortTransaction_forTesting();
    const through = rst.getSecondary().getDB("user_writes").runCommand(
        {aggregate: "c", pipeline: [{$set: {x: 7}}, {$merge: "c"}], cursor: {}, $readPreference: {mode: "secondary"}});
    assert.commandFailedWithCode(through, ErrorCodes.UserWritesBlocked);
    assert.eq([{_id: 1, x: 1}, {_id: 2, x: 2}], db.c.find().hint({x: 1}).toArray());
    assert.eq(["c"], db.getCollectionNames());
    assert.commandWorked(primary.getDB("admin").own.insert({x: 1}));
    assert.commandWorked(primary.getDB("config").own.insert({x: 1}));
}

// A transaction that has written before may end.
const session = primary.startSession();
session.startTransaction();
assert.commandWorked(session.getDatabase("user_writes").c.update({_id: 2}, {$set: {x: 2, kept: true}}));
assert.commandWorked(set({global: true}));
assert.commandWorked(session.commitTransaction_forTesting());
assert.commandWorked(set({global: false}));
assert.commandWorked(db.c.update({_id: 2}, {$unset: {kept: 1}}));

assert.commandWorked(set({global: true, reason: "DiskUseThresholdExceeded"}));
assert.eq(4, mode(primary));
blocked();
rst.getSecondaries().forEach((node) => assert.soon(() => mode(node) === 4));
const old = rst.getNodeId(primary);
rst.stop(old, undefined, undefined, {forRestart: true});
primary = rst.getPrimary();
db = primary.getDB("user_writes");
assert.eq(4, mode(primary));
blocked();
rst.start(old, {}, true);
rst.awaitReplication();
assert.eq(4, mode(rst.nodes[old]));

// Only who names the reason lets them write again.
assert.commandFailedWithCode(set({global: false}), ErrorCodes.IllegalOperation);
assert.commandFailedWithCode(set({global: true}), ErrorCodes.IllegalOperation);
assert.commandWorked(set({global: false, reason: "DiskUseThresholdExceeded"}));
assert.commandWorked(set({global: false}));
assert.eq(1, mode(primary));
assert.commandWorked(db.c.insert({_id: 3}));

for (const [code, options] of [[40414, {}], [14, {global: 1}], [2, {global: true, reason: "Whim"}], [40415, {global: true, more: 1}]]) {
    assert.commandFailedWithCode(set(options), code);
}
rst.stopSet();
const alone = MongoRunner.runMongod();
assert.commandFailedWithCode(alone.adminCommand({setUserWriteBlockMode: 1, global: true}), ErrorCodes.IllegalOperation);
MongoRunner.stopMongod(alone);
