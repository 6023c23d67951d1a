/**
 * A member with buildIndexes: false has the data and no index but that of _id; it can never lead, and nobody copies its indexes.
 * It fails if it builds an index, if it stumbles over one that changes or goes, also after a restart or a copy, if it differs in
 * data, or if a configuration would let it lead.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, reconfig, startedSet} from "jstests/replsets/libs/members.js";

const plainMember = {buildIndexes: false, hidden: true, priority: 0, votes: 0};
const rst = startedSet(2, {members: {1: plainMember}});
const primary = rst.getPrimary();
let plain = rst.nodes[1];
const test = primary.getDB("test");
const index = (key, more) => test.runCommand({createIndexes: "c", indexes: [Object.assign({key, name: tojson(key)}, more)], commitQuorum: 1});
const names = (node, name = "c") => {
    node.setSecondaryOk();
    return node.getDB("test")[name].getIndexes().map((i) => i.name);
};
assert.eq(false, plain.adminCommand({hello: 1}).buildIndexes);
assert.commandWorked(index({a: 1}));
assert.commandWorked(index({b: 1}, {unique: true}));
assert.commandWorked(insert(primary, [{_id: 1, a: 1, b: 1}, {_id: 2, a: 2, b: 2}], {w: 2}));
assert.eq(3, names(primary).length);
assert.eq(["_id_"], names(plain));
assert.eq(held(primary), held(plain));
const there = plain.getDB("test");
assert.eq(1, there.c.find({a: 2}).itcount());
assert.eq("COLLSCAN", there.c.find({a: 2}).explain().queryPlanner.winningPlan.stage);
assert.throws(() => there.c.find({a: 2}).hint(tojson({a: 1})).itcount());
assert.commandWorked(there.runCommand({validate: "c"}));

// What is said of an index that it does not have passes by, here and when the log is read again at a start.
assert.commandWorked(test.runCommand({collMod: "c", index: {name: tojson({b: 1}), hidden: true}}));
rst.stop(1);
assert.commandWorked(test.runCommand({dropIndexes: "c", index: tojson({a: 1})}));
assert.commandWorked(test.c.renameCollection("d"));
assert.commandWorked(test.d.renameCollection("c"));
plain = rst.start(1, {}, true);
rst.awaitSecondaryNodes();
assert.commandWorked(insert(primary, [{_id: 3}], {w: 2}));
assert.eq(["_id_"], names(plain));
assert.commandWorked(test.runCommand({dropIndexes: "c", index: tojson({b: 1})}));
assert.commandWorked(index({e: 1}));

// A member that copies everything builds indexes as its own line says, and not as its source has them.
const added = [rst.add({}), rst.add({})];
assert.commandWorked(reconfig(rst, (c) => c.members.push(Object.assign({_id: 2, host: added[0].host}, plainMember))));
assert.commandWorked(reconfig(rst, (c) => c.members.push({_id: 3, host: added[1].host, votes: 0, priority: 0})));
rst.awaitSecondaryNodes();
assert.commandWorked(insert(primary, [{_id: 4, e: 4}], {w: 4}));
assert.eq([["_id_"], ["_id_"], ["_id_", tojson({e: 1})]], [plain, ...added].map((node) => names(node)));
assert.commandFailedWithCode(added[1].adminCommand({replSetSyncFrom: plain.host}), ErrorCodes.InvalidOptions);
assert.commandWorked(test.runCommand({dropIndexes: "c", index: "*"}));
assert.commandWorked(insert(primary, [{_id: 5}], {w: 4}));
rst.checkReplicatedDataHashes();

const incompatible = ErrorCodes.NewReplicaSetConfigurationIncompatible;
assert.commandFailedWithCode(reconfig(rst, (c) => { Object.assign(c.members[1], {priority: 1, hidden: false}); }), incompatible);
assert.commandFailedWithCode(reconfig(rst, (c) => { c.members[1].buildIndexes = true; }), incompatible);
rst.stopSet();
