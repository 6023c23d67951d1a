/**
 * A change stream that was opened on one member goes on from its token on any other, also on a secondary.
 * It fails if an event is missing or comes twice there, or if it is shown before it is majority-committed.
 *
 * @tags: [requires_own_servers]
 */
import {hold, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const primary = rst.getPrimary();
const [one, two] = rst.getSecondaries();
assert.commandWorked(insert(primary, [{_id: 0}], {w: 3}));
function open(node, options = {}) {
    const command = {aggregate: "c", pipeline: [{$changeStream: options}], cursor: {}, $readPreference: {mode: "primaryPreferred"}};
    const cursor = assert.commandWorked(node.getDB("test").runCommand(command)).cursor;
    const seen = cursor.firstBatch;
    const more = () => {
        const command = {getMore: cursor.id, collection: "c", maxTimeMS: 500, $readPreference: {mode: "primaryPreferred"}};
        seen.push(...assert.commandWorked(node.getDB("test").runCommand(command)).cursor.nextBatch);
    };
    return {seen, more, upTo: (n) => assert.soon(() => { more(); return seen.length >= n; }, () => tojson(seen))};
}
const ids = (stream) => stream.seen.map((e) => e.documentKey._id);

const first = open(primary);
assert.commandWorked(insert(primary, [{_id: 1}, {_id: 2}, {_id: 3}], {w: 3}));
first.upTo(3);
assert.eq([1, 2, 3], ids(first));
for (const node of [one, two, primary]) {
    const resumed = open(node, {resumeAfter: first.seen[0]._id});
    resumed.upTo(2);
    assert.eq([2, 3], ids(resumed), node.host);
}

// An event that only a minority has is shown nowhere.
const streams = [primary, one].map((node) => open(node, {resumeAfter: first.seen[2]._id}));
[one, two].forEach(hold);
assert.commandWorked(insert(primary, [{_id: 4}]));
streams.forEach((stream) => stream.more());
assert.eq([[], []], streams.map(ids));
[one, two].forEach(letGo);
streams.forEach((stream) => stream.upTo(1));
assert.eq([[4], [4]], streams.map(ids));
rst.stopSet();
