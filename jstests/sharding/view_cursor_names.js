/**
 * A client asks for the next batch of a view by the view's name, as the first batch told it: drivers take `cursor.ns` of the reply, and applications
 * kill cursors by the collection that they read.
 * Fails when a router answers with the name of the sharded collection below the view, or knows the cursor by that name alone.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const [first, second] = shardNames(db);
const testDB = freshDatabase(db, "view_cursor_names", first);
const name = testDB.getName();
for (const coll of ["spread", "aside"]) {
    assert.commandWorked(db.adminCommand({shardCollection: name + "." + coll, key: {k: 1}}));
}
assert.commandWorked(db.adminCommand({split: name + ".spread", middle: {k: 10}}));
assert.commandWorked(db.adminCommand({moveChunk: name + ".spread", find: {k: 10}, to: second, _waitForDelete: true}));
assert.commandWorked(db.adminCommand({moveChunk: name + ".aside", find: {k: 0}, to: second, _waitForDelete: true}));
const docs = [...Array(20).keys()].map(k => ({_id: k, k}));
for (const coll of ["spread", "aside", "plain"]) {
    assert.commandWorked(testDB[coll].insert(docs));
    assert.commandWorked(testDB.createView(coll + "_view", coll, [{$match: {k: {$gte: 1}}}]));
}
assert.commandWorked(testDB.createView("nested_view", "spread_view", [{$set: {seen: true}}]));

function opening(view) {
    const aggregate = {aggregate: view, cursor: {batchSize: 3}};
    return [
        {find: view, batchSize: 3},
        {find: view, sort: {k: -1}, batchSize: 3},
        {...aggregate, pipeline: []},
        // A second half on the router.
        {...aggregate, pipeline: [{$group: {_id: "$k"}}, {$sort: {_id: 1}}]},
        {...aggregate, pipeline: [{$match: {k: {$gte: 12}}}]},
    ];
}
for (const view of ["spread_view", "aside_view", "plain_view", "nested_view"]) {
    const ns = name + "." + view;
    for (const command of opening(view)) {
        let cursor = assert.commandWorked(testDB.runCommand(command)).cursor;
        assert.eq(ns, cursor.ns, command);
        let count = cursor.firstBatch.length;
        while (cursor.id != 0) {
            cursor = assert.commandWorked(testDB.runCommand({getMore: cursor.id, collection: view, batchSize: 3}), tojson(command)).cursor;
            assert.eq(ns, cursor.ns, command);
            count += cursor.nextBatch.length;
        }
        assert.eq(tojson(command).includes("12") ? 8 : 19, count, command);

        const open = assert.commandWorked(testDB.runCommand(command)).cursor.id;
        assert.commandFailedWithCode(testDB.runCommand({getMore: open, collection: "spread"}), ErrorCodes.Unauthorized);
        const killed = assert.commandWorked(testDB.runCommand({killCursors: view, cursors: [open]}));
        assert.eq([open], killed.cursorsKilled, command);
        assert.commandFailedWithCode(testDB.runCommand({getMore: open, collection: view}), ErrorCodes.CursorNotFound);
    }
}
