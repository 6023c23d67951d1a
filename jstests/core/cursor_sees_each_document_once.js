/**
 * A cursor that stays open while documents change returns no document twice.
 * Fails when an update, a removal or an insertion between batches makes a scan repeat a document or lose one that nobody touched.
 */
const coll = db.cursor_sees_each_document_once;

function walk(hint, disturb) {
    coll.drop();
    assert.commandWorked(coll.insert([...Array(100).keys()].map(i => ({_id: i, k: i, untouched: i % 10 == 5}))));
    assert.commandWorked(coll.createIndex({k: 1}));
    const cursor = coll.find({k: {$gte: 0}}).hint(hint).batchSize(10);
    const seen = [];
    for (let i = 0; i < 10; i++) {
        seen.push(cursor.next());
    }
    disturb();
    while (cursor.hasNext()) {
        seen.push(cursor.next());
    }
    const ids = seen.map(doc => doc._id);
    const untouched = seen.filter(doc => doc.untouched).map(doc => doc._id);
    assert.sameMembers([5, 15, 25, 35, 45, 55, 65, 75, 85, 95], untouched);
    return ids;
}

for (const hint of [{$natural: 1}, {k: 1}, {_id: 1}]) {
    const removed = walk(hint, () => assert.commandWorked(coll.remove({untouched: false, k: {$gte: 50}})));
    assert.eq(removed.length, new Set(removed).size, () => tojson(hint));
    const grown = walk(hint, () => assert.commandWorked(coll.update({untouched: false}, {$set: {p: "x".repeat(500)}}, {multi: true})));
    assert.eq(100, new Set(grown).size, () => tojson(hint));
    assert.eq(100, grown.length, () => tojson(hint));
    // Its key moves ahead of a scan of the index, and behind it.
    for (const by of [1000, -1000]) {
        const moved = walk(hint, () => assert.commandWorked(coll.update({untouched: false}, {$inc: {k: by}}, {multi: true})));
        assert.eq(moved.length, new Set(moved).size, () => tojson({hint, by}));
    }
    const inserted = walk(hint, () => assert.commandWorked(coll.insert([{_id: 1000, k: 1000}, {_id: -1, k: -1}])));
    assert.eq(inserted.length, new Set(inserted).size, () => tojson(hint));
}
