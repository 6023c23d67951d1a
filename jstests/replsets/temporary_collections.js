/**
 * A collection that was made as a temporary one is used by who made it, through the primary of that time; the next primary drops it.
 * It fails if what nobody will ever drop stays, or if a collection goes that was not made so.
 *
 * @tags: [requires_own_servers]
 */
import {insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(2);
const primary = rst.getPrimary();
const test = primary.getDB("test");
const names = (node) => assert.commandWorked(node.getDB("test").runCommand(
    {listCollections: 1, $readPreference: {mode: "nearest"}})).cursor.firstBatch.map((c) => c.name).sort();
assert.commandWorked(test.runCommand({create: "for a while", temp: true}));
assert.commandWorked(test.runCommand({create: "to stay", temp: false}));
assert.commandWorked(insert(primary, [{_id: 1}], {w: 2}));
const all = ["c", "for a while", "to stay"];
rst.nodes.forEach((node) => assert.eq(all, names(node)));
const next = rst.getSecondary();
rst.stepUp(next);
assert.soon(() => rst.nodes.every((node) => friendlyEqual(["c", "to stay"], names(node))), () => tojson(rst.nodes.map(names)));
rst.stopSet();
