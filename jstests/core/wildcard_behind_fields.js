/**
 * A compound wildcard index has an entry for each path of a document. It fails if a search that does not say the path, since what is in front of
 * it is a range or nothing, finds a document several times.
 */
const coll = db.wildcard_behind_fields;
for (const key of [{b: 1, "$**": 1}, {"b.x": 1, "$**": 1}, {"$**": 1, b: 1}]) {
    coll.drop();
    assert.commandWorked(coll.createIndex(key, {wildcardProjection: {b: 0}}));
    assert.commandWorked(coll.insert([{_id: 1, a: 3, b: 1, c: "A"}, {_id: 2, a: 1, b: {x: 2}, c: "B"}, {_id: 3, a: 1, b: 2, d: 5}]));
    for (const front of [{}, {b: {$gt: 0}}, {b: {$ne: 5}}, {b: {$exists: true}}, {"b.x": {$gt: 0}}, {"b.x": {$ne: 7}}]) {
        for (const rest of [{a: {$gte: 1}}, {a: 1}, {a: {$gte: 1}, c: {$exists: true}}]) {
            const filter = Object.assign({}, front, rest);
            const wanted = coll.find(filter).hint({$natural: 1}).toArray().map((d) => d._id).sort();
            assert.eq(wanted, coll.find(filter).toArray().map((d) => d._id).sort(), tojson([key, filter]));
            assert.eq(wanted.length, coll.countDocuments(filter), tojson([key, filter]));
            for (const sort of [{b: 1}, {"b.x": 1}, {a: 1}]) {
                assert.eq(wanted, coll.find(filter).sort(sort).toArray().map((d) => d._id).sort(), tojson([key, filter, sort]));
            }
            const done = assert.commandWorked(coll.updateMany(filter, {$inc: {n: 1}}));
            assert.eq(wanted.length, done.modifiedCount, tojson([key, filter]));
            assert.eq(0, coll.find({n: {$gt: 1}}).hint({$natural: 1}).itcount(), tojson([key, filter]));
            assert.commandWorked(coll.updateMany({}, {$unset: {n: 1}}));
        }
    }
}
