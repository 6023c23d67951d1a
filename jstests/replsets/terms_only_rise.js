/**
 * Term, vote and configuration survive the death of all members. It fails if a term comes again, or if what a majority had is
 * gone.
 *
 * @tags: [requires_own_servers]
 */
import {held, insert, startedSet} from "jstests/replsets/libs/members.js";

const rst = startedSet(3, {settings: {electionTimeoutMillis: 1000}});
const terms = [];
for (let round = 0; round < 2; round++) {
    const primary = rst.getPrimary();
    assert.commandWorked(insert(primary, [{_id: round}], {w: "majority", j: true, wtimeout: 20000}));
    terms.push(assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).term);
    [0, 1, 2].forEach((id) => rst.stop(id, 9, {allowedExitCode: MongoRunner.EXIT_SIGKILL}));
    [0, 1, 2].forEach((id) => rst.start(id, {}, true));
}
const primary = rst.getPrimary();
terms.push(assert.commandWorked(primary.adminCommand({replSetGetStatus: 1})).term);
assert(terms[0] < terms[1] && terms[1] < terms[2], tojson(terms));
assert.eq([{_id: 0}, {_id: 1}], held(primary));
const entries = primary.getDB("local").oplog.rs.find({"o.msg": "new primary"}).toArray().map((e) => Number(e.t));
assert.eq(entries.length, new Set(entries).size, tojson(entries));
rst.stopSet();
