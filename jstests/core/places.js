// Places in 2dsphere and 2d indexes: what lies in a shape is found with an index as without, near queries return the
// nearest first, $geoNear gives distances, and values that are no places are refused where they would be indexed.
(function () {
    "use strict";
    const coll = db.places;
    coll.drop();
    const docs = [];
    for (let x = -40; x <= 40; x += 4) {
        for (let y = -40; y <= 40; y += 4) {
            docs.push({_id: docs.length, at: {type: "Point", coordinates: [x, y]}, flat: [x, y], even: x % 8 === 0});
        }
    }
    assert.commandWorked(coll.insert(docs));
    const ids = (filter) => coll.find(filter, {_id: 1}).map((d) => d._id).sort((a, b) => a - b);
    const square = {
        $geometry: {type: "Polygon", coordinates: [[[-9, -9], [9, -9], [9, 9], [-9, 9], [-9, -9]]]},
    };
    const filters = [
        {at: {$geoWithin: square}},
        {at: {$geoIntersects: square}, even: true},
        {at: {$geoWithin: {$centerSphere: [[10, 10], 0.2]}}},
        {flat: {$geoWithin: {$box: [[-5, -5], [12, 9]]}}},
        {flat: {$geoWithin: {$center: [[3, 3], 10]}}},
        {flat: {$geoWithin: {$polygon: [[0, 0], [20, 1], [1, 20]]}}},
    ];
    const scanned = filters.map(ids);
    scanned.forEach((found, i) => assert.gt(found.length, 3, tojson(filters[i])));
    assert.commandFailedWithCode(
        db.runCommand({find: coll.getName(), filter: {at: {$near: {$geometry: {type: "Point", coordinates: [0, 0]}}}}}),
        291,
    );

    assert.commandWorked(coll.createIndex({at: "2dsphere", even: 1}));
    assert.commandWorked(coll.createIndex({flat: "2d"}));
    assert.eq(3, coll.getIndexes().find((i) => i.key.at)["2dsphereIndexVersion"]);
    filters.forEach((filter, i) => assert.eq(scanned[i], ids(filter), tojson(filter)));

    // The nearest first, within the limits, wherever the documents lie.
    const near = coll
        .find({at: {$near: {$geometry: {type: "Point", coordinates: [1, 1]}, $maxDistance: 800000}}})
        .toArray();
    assert.gt(near.length, 5);
    assert.eq([0, 0], near[0].flat);
    const away = (d) => Math.hypot(d.flat[0] - 1, d.flat[1] - 1);
    for (let i = 1; i < near.length; i++) {
        assert.lte(away(near[i - 1]), away(near[i]) + 0.1, tojson(near));
    }
    assert.eq([4, 4], coll.find({flat: {$near: [5, 5], $maxDistance: 3}}).next().flat);
    const byId = coll.find({flat: {$near: [5, 5], $maxDistance: 9}}).sort({_id: -1}).toArray();
    assert.gt(byId[0]._id, byId[1]._id);

    const stage = {
        $geoNear: {
            near: {type: "Point", coordinates: [0, 1]},
            distanceField: "d.m",
            includeLocs: "place",
            key: "at",
            query: {even: true},
            maxDistance: 1000000,
        },
    };
    const measured = coll.aggregate([stage, {$limit: 3}]).toArray();
    assert.eq(3, measured.length);
    assert.eq([0, 0], measured[0].flat);
    assert.close(111318.845, measured[0].d.m, "the length of a degree", 2);
    assert.eq(measured[0].at, measured[0].place);
    assert.lte(measured[0].d.m, measured[1].d.m);
    assert.lte(measured[1].d.m, measured[2].d.m);

    const refused = (doc, code) => assert.commandFailedWithCode(coll.insert(doc), code);
    refused({at: {type: "Point", coordinates: [0, 91]}}, 16755);
    refused({at: "here"}, 16755);
    refused({flat: [200, 0]}, 13027);
    assert.commandWorked(coll.insert({_id: "nowhere"}));
    assert.commandFailedWithCode(
        db.runCommand({aggregate: coll.getName(), pipeline: [{$match: {flat: {$near: [0, 0]}}}], cursor: {}}),
        5626500,
    );
    // A scan has no order by distance.
    assert.commandFailedWithCode(
        db.runCommand({find: coll.getName(), filter: {flat: {$near: [0, 0]}}, hint: {$natural: 1}}), ErrorCodes.BadValue);
    // Nothing is infinitely far off, and only what reads no text and runs no script may stand beside the place.
    const origin = {near: {type: "Point", coordinates: [0, 0]}, key: "at", distanceField: "d"};
    const beside = more => db.runCommand({aggregate: coll.getName(), pipeline: [{$geoNear: Object.assign({}, origin, more)}], cursor: {}});
    assert.eq([], assert.commandWorked(beside({minDistance: Infinity})).cursor.firstBatch);
    assert.commandFailedWithCode(beside({query: {$where: "true"}}), ErrorCodes.BadValue);
    assert.commandFailedWithCode(beside({query: {$text: {$search: "x"}}}), ErrorCodes.BadValue);
    // A grid has an end, for points to be near to as for those in it, and is the first field of its index.
    assert.commandFailedWithCode(db.runCommand({find: coll.getName(), filter: {flat: {$near: [181, 0]}}}), 16433);
    assert.commandWorked(db.runCommand({find: coll.getName(), filter: {flat: {$near: [180, 0]}}}));
    assert.commandFailedWithCode(coll.createIndex({other: 1, more: "2d"}), 16800);
    assert.commandFailedWithCode(coll.createIndex({other: "2d", more: "2d"}), 16800);

    // A partial index serves a near query only where it has every document that the query can match.
    const some = db.places_of_some;
    some.drop();
    assert.commandWorked(some.insert([{_id: 1, at: [0, 0], a: 2}, {_id: 2, at: [1, 0], a: 1}]));
    assert.commandWorked(some.createIndex({at: "2dsphere"}, {name: "some", partialFilterExpression: {a: 1}}));
    const nearest = (more) => some.find(Object.assign({at: {$nearSphere: [0, 0]}}, more)).toArray().map((d) => d._id);
    assert.eq([2], nearest({a: 1}));
    assert.commandFailedWithCode(
        db.runCommand({find: some.getName(), filter: {at: {$nearSphere: [0, 0]}}}), ErrorCodes.NoQueryExecutionPlans);
    assert.commandWorked(some.createIndex({at: "2dsphere", b: 1}));
    assert.eq([1, 2], nearest({}));

    // What is empty is no place and no error.
    assert.commandWorked(some.insert([{_id: 3, at: [], a: 1}, {_id: 4, at: {}, a: 1}]));
    assert.eq([1, 2], nearest({}));
})();
