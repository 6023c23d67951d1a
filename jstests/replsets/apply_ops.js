/**
 * applyOps applies entries one after the other, each as the command would that does the same: logged, replicated, under
 * validators. It fails if a member that follows differs, if a bad entry passes, or if what was done before an error is lost.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 2});
rst.startSet();
rst.initiate();
const primary = rst.getPrimary();
const testDB = primary.getDB("apply_ops");
const c = testDB.c;
const ns = c.getFullName();
const apply = (ops, options) => testDB.adminCommand(Object.assign({applyOps: ops}, options));
const cmd = (o) => ({op: "c", ns: "apply_ops.$cmd", o});
const insert = (o) => ({op: "i", ns, o});
const update = (id, o, more) => Object.assign({op: "u", ns, o, o2: {_id: id}}, more);

let reply = assert.commandWorked(apply([cmd({create: "c", idIndex: {v: 2, key: {_id: 1}, name: "_id_"}})]));
assert.eq([1, [true]], [reply.applied, reply.results]);
reply = assert.commandWorked(apply([
    insert({_id: 1, a: [1, 2], x: 1}),
    insert({x: 5, _id: 2}),
    {op: "n", ns, o: {msg: "nothing"}},
    insert({_id: 2, y: 1}),
    update(1, {$v: 2, diff: {u: {x: 2}, sa: {a: true, u3: 4}}}),
    insert({_id: 3}),
    update(3, {z: 1}),
    insert({_id: 4}),
    {op: "d", ns, o: {_id: 4}},
    {op: "d", ns, o: {_id: 5}},
    update(6, {v: 6}, {b: true}),
]));
assert.eq(10, reply.applied);
const expected = [{_id: 1, a: [1, 2, null, 4], x: 2}, {_id: 2, y: 1}, {_id: 3, z: 1}, {_id: 6, v: 6}];
assert.eq(expected, c.find().sort({_id: 1}).toArray());
assert.commandWorked(apply([cmd({createIndexes: "c", v: 2, key: {z: 1}, name: "zed"})]));
assert.eq(["_id_", "zed"], c.getIndexes().map((i) => i.name));

// An update that finds nothing lets the rest go on; a failed entry does not.
reply = assert.commandFailedWithCode(apply([update(99, {q: 1}), insert({_id: 7})]), 8);
assert.eq([2, [false, true]], [reply.applied, reply.results]);
reply = assert.commandFailedWithCode(apply([insert({_id: 8}), {op: "i", ns: "apply_ops.none", o: {_id: 1}}, insert({_id: 9})]), 26);
assert.eq([2, [true, false]], [reply.applied, reply.results]);
assert.eq([1, 0], [c.find({_id: 8}).itcount(), c.find({_id: 9}).itcount()]);
assert(!testDB.getCollectionNames().includes("none"));

// Entries that are refused before any is applied.
for (const [bad, code] of [
         [{}, 4],
         [1, 14],
         [{op: "x", ns, o: {}}, 2],
         [{op: "", ns, o: {}}, 20],
         [{op: 1, ns, o: {}}, 14],
         [{op: "i", o: {}}, 20],
         [{op: "i", ns: "", o: {}}, 20],
         [{op: "i", ns}, 40414],
]) {
    assert.commandFailedWithCode(apply([insert({_id: "not there"}), bad]), code, tojson(bad));
}
assert.eq(0, c.find({_id: "not there"}).itcount());
// And as they are applied.
for (const [bad, code] of [
         [insert({}), 4],
         [update(1, {a: 1}, {o2: {}}), 4],
         [update(1, {_id: 2, a: 1}), 66],
         [update(1, {$v: 2, diff: {d: {_id: false}}}), 66],
         [update(1, {$v: 2, diff: {sa: {a: true, u999999999: 1}}}), 10334],
         [update(1, {$v: 1, $set: {a: 1}}), 4772600],
         [update(1, {$set: {a: 1}}), 4772600],
         [{op: "i", ns, o: {_id: 1}, ui: UUID()}, 26],
         [{op: "i", ns: "local.oplog.rs", o: {_id: 1}}, 73],
         [cmd({nonsense: 1}), 2],
         [cmd({startIndexBuild: "c"}), 115],
         [cmd({commitIndexBuild: "c"}), 115],
         [{op: "d", ns, o: {_id: 1}, ui: 1}, 14],
         [Object.assign(cmd({drop: "c"}), {ui: UUID()}), 26],
         [Object.assign(cmd({create: "c"}), {ui: UUID()}), 48],
         [cmd({applyOps: [update(1, {$set: {a: 1}})]}), 4772600],
         [{op: "c", ns, o: {drop: "c"}}, 73],
]) {
    assert.commandFailedWithCode(apply([bad]), code, tojson(bad));
}
assert.commandFailedWithCode(testDB.adminCommand({applyOps: 1}), 14);
assert.commandFailedWithCode(apply([], {preCondition: []}), 6711600);
assert.commandFailedWithCode(apply([], {alwaysUpsert: true}), 6711601);
assert.commandFailedWithCode(apply([], {alwaysUpsert: 1}), 14);
assert.commandFailedWithCode(apply([], {partialTxn: false}), 31056);
assert.commandFailedWithCode(apply([], {prepare: true}), 2);
assert.commandWorked(apply([], {alwaysUpsert: false, allowAtomic: "yes", other: 1}));
assert.eq(expected[0], c.findOne({_id: 1}));

// An applyOps within another applies its entries in their place; a bad one in it is refused before any is applied.
reply = assert.commandWorked(apply([insert({_id: "n1"}), cmd({applyOps: [insert({_id: "n2"}), cmd({applyOps: [insert({_id: "n3"})]})]})]));
assert.eq([2, [true, true]], [reply.applied, reply.results]);
assert.commandFailedWithCode(apply([insert({_id: "n4"}), cmd({applyOps: [{op: "x", ns, o: {}}]})]), 2);
assert.commandFailedWithCode(apply([cmd({applyOps: 1})]), 14);
let deep = insert({_id: "deep"});
for (let i = 0; i < 10; i++) {
    deep = cmd({applyOps: [deep]});
}
assert.commandWorked(apply([deep]));
assert.commandFailedWithCode(apply([cmd({applyOps: [deep]})]), 9);
assert.eq(["deep", "n1", "n2", "n3"], c.find({_id: /^[nd]/}).sort({_id: 1}).toArray().map((d) => d._id));

// A command that names its collection by UUID finds it under any name; a new one gets the UUID.
const uuid = UUID();
const uuidOf = (name) => testDB.getCollectionInfos({name})[0].info.uuid;
const by = (o) => Object.assign(cmd(o), {ui: uuid});
assert.commandWorked(apply([by({create: "made"})]));
assert.eq(uuid, uuidOf("made"));
assert.commandWorked(apply([by({create: "made"})]));
assert.commandFailedWithCode(apply([by({create: "other"})]), 48);
assert.commandWorked(testDB.adminCommand({renameCollection: "apply_ops.made", to: "apply_ops.found"}));
assert.commandWorked(apply([by({createIndexes: "made", v: 2, key: {z: 1}, name: "zed"})]));
assert.eq(2, testDB.found.getIndexes().length);
assert.commandWorked(apply([by({dropIndexes: "made", index: "zed"}), by({collMod: "made", validator: {a: 1}})]));
assert.eq(1, testDB.found.getIndexes().length);
assert.commandWorked(apply([by({renameCollection: "apply_ops.made", to: "apply_ops.again"})]));
assert.eq(uuid, uuidOf("again"));
assert.commandWorked(apply([by({drop: "made"})]));
assert(!testDB.getCollectionNames().includes("again"));

// Views come, change and go, by commands and by entries on system.views.
const views = () => testDB.getCollectionInfos({type: "view"}).map((v) => [v.name, v.options.viewOn, v.options.pipeline]);
const entry = (op, name, on, pipeline) => ({op, ns: "apply_ops.system.views", o: {_id: "apply_ops." + name, viewOn: on, pipeline}});
assert.commandWorked(apply([cmd({create: "w1", viewOn: "c", pipeline: [{$match: {x: 2}}]}), entry("i", "w2", "w1", [])]));
assert.eq([["w1", "c", [{$match: {x: 2}}]], ["w2", "w1", []]], views());
assert.eq([expected[0]], testDB.w2.find().toArray());
assert.commandWorked(apply([
    cmd({collMod: "w1", viewOn: "c", pipeline: []}),
    Object.assign(entry("u", "w2", "c", [{$limit: 1}]), {o2: {_id: "apply_ops.w2"}}),
]));
assert.eq([["w1", "c", []], ["w2", "c", [{$limit: 1}]]], views());
assert.commandFailedWithCode(apply([Object.assign(cmd({create: "w3", viewOn: "c", pipeline: []}), {ui: UUID()})]), 72);
assert.commandFailedWithCode(apply([{op: "i", ns: "apply_ops.system.views", o: {_id: "other.w", viewOn: "c", pipeline: []}}]), 182);
assert.commandFailedWithCode(apply([entry("i", "w4", "w4", [])]), 5);
assert.commandWorked(apply([cmd({drop: "w1"}), {op: "d", ns: "apply_ops.system.views", o: {_id: "apply_ops.w2"}}]));
assert.eq([], views());

// Validators, views and unique indexes hold.
assert.commandWorked(apply([cmd({collMod: "c", validator: {bad: {$exists: false}}})]));
assert.commandFailedWithCode(apply([insert({_id: 10, bad: 1})]), 121);
assert.commandFailedWithCode(apply([update(1, {bad: 1})]), 121);
assert.commandWorked(apply([insert({_id: 10, bad: 1})], {bypassDocumentValidation: true}));
assert.commandWorked(c.createIndex({u: 1}, {unique: true, sparse: true}));
assert.commandFailedWithCode(apply([insert({_id: 11, u: 1}), insert({_id: 12, u: 1})]), 11000);
assert.commandWorked(testDB.createView("v", "c", []));
assert.commandFailedWithCode(apply([{op: "i", ns: "apply_ops.v", o: {_id: 1}}]), 166);
assert.commandWorked(apply([cmd({dropIndexes: "c", index: "zed"})]));
assert.commandWorked(apply([{op: "c", ns: "admin.$cmd", o: {renameCollection: ns, to: "apply_ops.d"}}]));

// The member that follows has the same, and applies nothing itself.
rst.awaitReplication();
const secondary = rst.getSecondary();
secondary.setSecondaryOk();
const there = secondary.getDB("apply_ops").d;
assert.eq(testDB.d.find().sort({_id: 1}).toArray(), there.find().sort({_id: 1}).toArray());
assert.eq(testDB.d.getIndexes(), there.getIndexes());
assert.commandFailedWithCode(secondary.adminCommand({applyOps: []}), 10107);
assert.commandWorked(apply([cmd({drop: "d"})]));
assert.eq(0, testDB.d.find().itcount());
rst.stopSet();
