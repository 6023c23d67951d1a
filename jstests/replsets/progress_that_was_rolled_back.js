/**
 * A write concern is not met by what a member had before it rolled back: its position is that of the history it follows now.
 * It fails if w: 3 is acknowledged while a member lacks the write.
 *
 * @tags: [requires_own_servers]
 */
import {held, holdBehind, insert, letGo, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3);
const old = rst.getPrimary();
const oldId = rst.getNodeId(old);
const others = rst.getSecondaries();
assert.commandWorked(insert(old, [{_id: 0}], {w: 3, wtimeout: 20000}));
holdBehind(old, others);
// Nobody else has what follows. More of it than what the next primary writes, so that its positions are ahead.
for (let i = 0; i < 20; i++) {
    assert.commandWorked(insert(old, [{_id: "lost" + i}]));
    sleep(10);
}
rst.stop(oldId, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL});
others.forEach(letGo);
const primary = rst.getPrimary();
assert.commandWorked(insert(primary, [{_id: "kept"}], {w: "majority", wtimeout: 20000}));
rst.start(oldId, {setParameter: {"failpoint.rsSyncApplyStop": "{mode: 'off'}"}}, true);
const back = rst.nodes[oldId];
rst.awaitSecondaryNodes();
// It has rolled back by the time it has what was written in its absence.
assert.soonNoExcept(() => held(back).some((d) => d._id === "kept"));
assert(!held(back).some((d) => String(d._id).startsWith("lost")), tojson(held(back)));
holdBehind(primary, [back], "d");
assert.commandWorked(insert(primary, [{_id: "first"}], {w: 2, wtimeout: 20000}));
const reply = insert(primary, [{_id: "second"}], {w: 3, wtimeout: 500});
assert.eq(64, reply.writeConcernError.code, tojson(reply));
letGo(back);
assert.commandWorked(insert(primary, [{_id: "third"}], {w: 3, wtimeout: 20000}));
assert.eq(held(primary), held(back));
rst.stopSet();
