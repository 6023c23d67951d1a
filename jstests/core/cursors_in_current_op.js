/**
 * Who looks for what holds memory asks currentOp for cursors: how much they have given, and by which command they were opened.
 * It fails if a getMore is shown without its cursor, if what a cursor has given is not counted, or if many cursors with long commands
 * cannot be listed.
 *
 * @tags: [assumes_against_mongod_not_mongos]
 */
import {configureFailPoint} from "jstests/libs/fail_point_util.js";
import {funWithArgs} from "jstests/libs/parallel_shell_helpers.js";

const coll = db.cursors_in_current_op;
coll.drop();
assert.commandWorked(coll.insert([...Array(10).keys()].map((i) => ({_id: i}))));
const lsid = {id: UUID()};
const open = (filter, comment) =>
    assert.commandWorked(db.runCommand({find: coll.getName(), filter, batchSize: 2, comment, noCursorTimeout: true, lsid})).cursor.id;
const listed = (options, match) =>
    db.getSiblingDB("admin").aggregate([{$currentOp: options}, {$match: match}]).toArray();
const idle = (id) => listed({idleCursors: true}, {type: "idleCursor", "cursor.cursorId": id})[0];

const short = open({}, "short");
let row = idle(short);
assert.eq([coll.getFullName(), short], [row.ns, row.cursor.cursorId]);
const counts = (row) => [row.cursor.nDocsReturned, row.cursor.nBatchesReturned].map(Number);
assert.eq([2, 1], counts(row));
assert.eq([true, false, false], [row.cursor.noCursorTimeout, row.cursor.tailable, row.cursor.awaitData]);
assert.eq("short", row.cursor.originatingCommand.comment);
assert(!row.cursor.hasOwnProperty("operationUsingCursorId"));
assert.commandWorked(db.runCommand({getMore: short, collection: coll.getName(), batchSize: 3, lsid}));
row = idle(short);
assert.eq([5, 2], counts(row));

// A command of megabytes is shown by its beginning, so that a hundred can be listed.
const long = open({$or: [{_id: {$gte: 0}}, {_id: "x".repeat(1024 * 1024)}]}, "long");
row = idle(long);
assert(row.cursor.originatingCommand.$truncated.startsWith('{ find: "cursors_in_current_op"'), tojson(row).substring(0, 500));
assert.lt(Object.bsonsize(row), 100 * 1024);

const held = configureFailPoint(db, "waitAfterPinningCursorBeforeGetMoreBatch");
const join = startParallelShell(
    funWithArgs((id, name, lsid) => {
        assert.eq(3, assert.commandWorked(db.runCommand({getMore: id, collection: name, batchSize: 3, lsid})).cursor.nextBatch.length);
    }, short, coll.getName(), lsid),
    db.getMongo().port,
);
held.wait();
assert.eq(undefined, idle(short));
const [used] = listed({}, {"command.getMore": short});
assert.eq([used.opid, 5], [used.cursor.operationUsingCursorId, used.cursor.nDocsReturned].map(Number), tojson(used));
assert.eq(short, used.cursor.cursorId);
held.off();
join();
assert.eq([8, 3], counts(idle(short)));
assert.commandWorked(db.runCommand({killCursors: coll.getName(), cursors: [short, long]}));
