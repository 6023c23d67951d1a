/**
 * A change stream resumes on the next primary and shows each event once. It fails if one is lost or comes twice over a
 * failover, or if an event is shown that only the old primary had.
 *
 * @tags: [requires_own_servers]
 */
import {holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
const others = rst.getSecondaries();
assert.commandWorked(insert(old, [{_id: 0}], {w: 3, wtimeout: 20000}));
let stream = old.getDB("test").c.watch();
for (let i = 1; i <= 5; i++) {
    assert.commandWorked(insert(old, [{_id: i}], {w: "majority", wtimeout: 20000}));
}
const next = (s) => {
    let event;
    assert.soon(() => s.hasNext() && (event = s.next()));
    return event;
};
const first = [next(stream), next(stream)];
assert.eq([1, 2], first.map((e) => e.documentKey._id));
// On its way to the others when they stop is this; what follows stays here.
holdBehind(old, others, "d");
assert.commandWorked(insert(old, [{_id: "lost"}]));
rst.stop(rst.getNodeId(old), 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
others.forEach(letGo);
const primary = rst.getPrimary();
assert.commandWorked(insert(primary, [{_id: 6}], {w: "majority", wtimeout: 20000}));
stream = primary.getDB("test").c.watch([], {resumeAfter: first[1]._id});
assert.eq([3, 4, 5, 6], [1, 2, 3, 4].map(() => next(stream).documentKey._id));
rst.stopSet();
