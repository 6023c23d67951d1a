/**
 * Write concerns by tags wait for members of so many values of a tag. It fails if one is met without them, or refused though
 * they are there.
 *
 * @tags: [requires_own_servers]
 */
import {hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {
    members: {0: {tags: {dc: "east"}, priority: 2}, 1: {tags: {dc: "east"}}, 2: {tags: {dc: "west"}}},
    // The member that is held is nobody's source.
    settings: {chainingAllowed: false, getLastErrorModes: {spread: {dc: 2}, far: {dc: 3}}},
});
const [primary, west] = [rst.getPrimary(), rst.nodes[2]];
assert.commandWorked(insert(primary, [{_id: 1}], {w: "spread", wtimeout: 20000}));
hold(west);
assert.commandWorked(insert(primary, [{_id: 2}], {w: 2, wtimeout: 20000}));
assert.eq(64, insert(primary, [{_id: 3}], {w: "spread", wtimeout: 300}).writeConcernError.code);
letGo(west);
assert.commandWorked(insert(primary, [{_id: 4}], {w: "spread", wtimeout: 20000}));
assert.eq(100, insert(primary, [{_id: 5}], {w: "far", wtimeout: 300}).writeConcernError.code);
assert.eq(79, insert(primary, [{_id: 6}], {w: "nowhere"}).writeConcernError.code);

// Tags can be counted without a mode.
assert.commandWorked(insert(primary, [{_id: 7}], {w: {dc: 2}, wtimeout: 20000}));
hold(west);
assert.commandWorked(insert(primary, [{_id: 8}], {w: {dc: 1}, wtimeout: 20000}));
const late = insert(primary, [{_id: 9}], {w: {dc: 2}, wtimeout: 300}).writeConcernError;
assert.eq(64, late.code);
assert.eq({dc: NumberLong(2)}, late.errInfo.writeConcern.w);
letGo(west);
assert.commandWorked(insert(primary, [{_id: 10}], {w: {dc: 2}, wtimeout: 20000}));
assert.eq(100, insert(primary, [{_id: 11}], {w: {dc: 3}}).writeConcernError.code);
assert.eq(4, insert(primary, [{_id: 12}], {w: {dc: 1, rack: 1}}).writeConcernError.code);
assert.eq(12, primary.getDB("test").c.find().itcount());

// They can be the default of all writes, too.
assert.commandFailedWithCode(primary.adminCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: {dc: 3}}}), 100);
assert.commandWorked(primary.adminCommand({setDefaultRWConcern: 1, defaultWriteConcern: {w: {dc: 2}, wtimeout: 300}}));
hold(west);
assert.eq(64, primary.getDB("test").runCommand({insert: "c", documents: [{_id: 13}]}).writeConcernError.code);
letGo(west);
rst.stopSet();
