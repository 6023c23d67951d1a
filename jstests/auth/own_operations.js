/**
 * A user looks after its own operations, cursors and sessions on a server that others use too.
 * It fails if it is shown what others do, or may end it.
 *
 * @tags: [requires_own_servers]
 */
import {makeUser, startWithRoot} from "jstests/auth/libs/nodes.js";

const {conn, root} = startWithRoot();
assert.commandWorked(root.getDB("d").c.insert([{_id: 1}, {_id: 2}, {_id: 3}]));
const u = makeUser(root, "u", [{role: "readWrite", db: "d"}]);
const [mine, theirs] = [u.getDB("admin"), root.getDB("admin")];
const lsid = {id: UUID()};
const open = (db) => assert.commandWorked(db.getSiblingDB("d").runCommand({find: "c", batchSize: 1, lsid})).cursor.id;
const more = (db, id) => db.getSiblingDB("d").runCommand({getMore: id, collection: "c", batchSize: 1, lsid});
const rows = (db, stage) => assert.commandWorked(db.runCommand({aggregate: 1, pipeline: [stage], cursor: {}})).cursor.firstBatch;

const [of_root, of_u] = [open(theirs), open(mine)];
const all = {idleCursors: true, idleConnections: true, idleSessions: true};
const cursors = (list) => list.filter((row) => row.type === "idleCursor").map((row) => row.cursor.cursorId);
assert.eq([of_u], cursors(rows(mine, {$currentOp: all})));
assert.eq(2, cursors(rows(theirs, {$currentOp: Object.assign({allUsers: true}, all)})).length);
const shown = assert.commandWorked(mine.runCommand({currentOp: 1, $ownOps: true, $all: true})).inprog;
assert(shown.every((op) => op.effectiveUsers === undefined || op.effectiveUsers[0].user === "u"), () => tojson(shown));
assert.commandFailedWithCode(mine.runCommand({currentOp: 1}), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(mine.runCommand({aggregate: 1, pipeline: [{$currentOp: {allUsers: true}}], cursor: {}}),
                             ErrorCodes.Unauthorized);

// A session's id is another session for each user.
assert.eq(1, rows(mine, {$listLocalSessions: {}}).filter((row) => bsonBinaryEqual({x: row._id.id}, {x: lsid.id})).length);
assert.commandFailedWithCode(more(mine, of_root), ErrorCodes.Unauthorized);
assert.commandWorked(mine.runCommand({killSessions: [lsid]}));
assert.commandFailedWithCode(more(mine, of_u), ErrorCodes.CursorNotFound);
assert.commandWorked(more(theirs, of_root));
assert.commandFailedWithCode(mine.runCommand({killAllSessions: []}), ErrorCodes.Unauthorized);
assert.commandFailedWithCode(mine.getSiblingDB("d").runCommand({killCursors: "c", cursors: [of_root]}), ErrorCodes.Unauthorized);

// An operation is ended by who runs it, or by who may end any.
assert.commandFailedWithCode(mine.runCommand({killOp: 1, op: 1}), ErrorCodes.Unauthorized);
assert.commandWorked(theirs.runCommand({killOp: 1, op: 1}));
MongoRunner.stopMongod(conn);
