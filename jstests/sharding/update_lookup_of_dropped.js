/**
 * Who follows changes with updateLookup copies what an event carries: it must be of the collection that was changed.
 * It fails if the document that a dropped collection had is looked up in another one of the same name.
 *
 * @tags: [requires_sharding]
 */
import {freshDatabase, shardNames} from "jstests/sharding/libs/cluster.js";

const [first] = shardNames(db);
for (const sharded of [false, true]) {
    const test = freshDatabase(db, "update_lookup_of_dropped", first);
    const make = () => {
        if (sharded) {
            assert.commandWorked(db.adminCommand({shardCollection: test.c.getFullName(), key: {_id: 1}}));
        }
    };
    make();
    const stream = test.watch([{$match: {operationType: "update"}}], {fullDocument: "updateLookup"});
    assert.commandWorked(test.c.insert([{_id: 1, v: 1}, {_id: 2, v: 1}]));
    assert.commandWorked(test.c.updateOne({_id: 2}, {$set: {v: 2}}));
    assert.soon(() => stream.hasNext());
    assert.eq({_id: 2, v: 2}, stream.next().fullDocument);
    assert.commandWorked(test.c.updateOne({_id: 1}, {$set: {v: 2}}));
    test.c.drop();
    make();
    assert.commandWorked(test.c.insert({_id: 1, v: 99}));
    assert.soon(() => stream.hasNext());
    const event = stream.next();
    assert.eq([{_id: 1}, null], [event.documentKey, event.fullDocument], tojson(event));
    stream.close();
}
