/**
 * A getMore carries the API parameters of the command that opened its cursor. It fails if others pass, or if a router's own requests to its
 * shards are refused for them.
 */
const coll = db.cursors_keep_their_api;
coll.drop();
assert.commandWorked(coll.insert([...Array(10).keys()].map((i) => ({_id: i}))));
const all = [{}, {apiVersion: "1"}, {apiVersion: "1", apiStrict: true}, {apiVersion: "1", apiStrict: false}, {apiVersion: "1", apiDeprecationErrors: true}];
for (const open of [{find: coll.getName(), batchSize: 2}, {aggregate: coll.getName(), pipeline: [{$sort: {_id: 1}}], cursor: {batchSize: 2}}]) {
    for (const api of all) {
        const {cursor} = assert.commandWorked(db.runCommand(Object.assign({}, open, api)));
        const more = (api) => db.runCommand(Object.assign({getMore: cursor.id, collection: coll.getName(), batchSize: 2}, api));
        for (const other of all.filter((other) => other !== api)) {
            assert.commandFailedWithCode(more(other), ErrorCodes.APIMismatchError, tojson([api, other]));
        }
        assert.eq(2, assert.commandWorked(more(api)).cursor.nextBatch.length);
        assert.commandWorked(db.runCommand({killCursors: coll.getName(), cursors: [cursor.id]}));
    }
}
