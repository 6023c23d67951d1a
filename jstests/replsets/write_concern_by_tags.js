/**
 * Write concerns by tags wait for members of so many values of a tag. It fails if one is met without them, or refused though
 * they are there.
 *
 * @tags: [requires_own_servers]
 */
import {hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {
    members: {0: {tags: {dc: "east"}, priority: 2}, 1: {tags: {dc: "east"}}, 2: {tags: {dc: "west"}}},
    settings: {getLastErrorModes: {spread: {dc: 2}, far: {dc: 3}}},
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
rst.stopSet();
