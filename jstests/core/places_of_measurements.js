/**
 * A 2dsphere index on a field of measurements finds the buckets that may hold what is asked for, and nothing is missed: the answers
 * are those of a scan, also after buckets have grown, lost measurements and been compressed.
 */
const coll = db.places_of_measurements;
coll.drop();
assert.commandWorked(db.createCollection(coll.getName(), {timeseries: {timeField: "t", metaField: "m"}}));
const at = (lng, lat) => ({type: "Point", coordinates: [lng, lat]});
// Ten sensors, each moving within a few degrees of its own; every seventh measurement has no place, every fifth a line.
function measured(sensor, i) {
    const lng = sensor * 20 - 90 + (i % 10) / 10, lat = (i % 40) / 10;
    const doc = {_id: sensor * 1000 + i, t: new Date(1700000000000 + i * 1000), m: sensor, n: i};
    if (i % 7) {
        doc.p = {at: i % 5 ? at(lng, lat) : {type: "LineString", coordinates: [[lng, lat], [lng + 1, lat + 1]]}};
    }
    return doc;
}
for (let sensor = 0; sensor < 10; sensor++) {
    const docs = [];
    for (let i = 0; i < 200; i++) docs.push(measured(sensor, i));
    assert.commandWorked(coll.insert(docs));
}
assert.commandWorked(coll.createIndex({"p.at": "2dsphere"}));
assert.commandWorked(coll.createIndex({m: 1, "p.at": "2dsphere"}));
assert.eq(["m_1_p.at_2dsphere", "p.at_2dsphere"], coll.getIndexes().map((i) => i.name).filter((n) => /2dsphere/.test(n)).sort());
assert.commandFailedWithCode(coll.createIndex({"p.at": "2d"}), 67);
assert.commandFailedWithCode(db.ordinary_places.createIndex({"data.p": "2dsphere_bucket"}), 67);

const square = (lng, lat, side) => ({
    type: "Polygon",
    coordinates: [[[lng, lat], [lng + side, lat], [lng + side, lat + side], [lng, lat + side], [lng, lat]]],
});
const filters = [
    {"p.at": {$geoWithin: {$geometry: square(-71, -1, 6)}}},
    {"p.at": {$geoWithin: {$centerSphere: [[-50, 2], 0.01]}}},
    {"p.at": {$geoIntersects: {$geometry: square(-29.5, 0.5, 0.4)}}},
    {"p.at": {$geoIntersects: {$geometry: at(10.3, 0.3)}}},
    {m: 5, "p.at": {$geoWithin: {$geometry: square(0, -1, 30)}}},
    {$or: [{"p.at": {$geoWithin: {$centerSphere: [[-50, 2], 0.01]}}}, {m: 1, n: {$lt: 3}}]},
    {"p.at": {$geoWithin: {$box: [[-91, 0], [-89, 1]]}}},
];
const near = (options) => [{$geoNear: Object.assign({key: "p.at", distanceField: "d"}, options)}, {$project: {d: 1}}];
const pipelines = [
    near({near: at(-49.8, 1), maxDistance: 50000}),
    near({near: [-49.8, 1], spherical: true, maxDistance: 0.01, query: {n: {$gt: 20}}}),
    near({near: at(-49.8, 1), minDistance: 100000, maxDistance: 3000000, query: {m: 3}}),
];
const ids = (cursor) => cursor.toArray().map((d) => d._id).sort((a, b) => a - b);
function agree(when) {
    for (const filter of filters) {
        const scanned = ids(coll.find(filter).hint({$natural: 1}));
        assert.gt(scanned.length, 0, tojson(filter));
        assert.eq(scanned, ids(coll.find(filter)), when + ": " + tojson(filter));
    }
    for (const pipeline of pipelines) {
        const scanned = coll.aggregate(pipeline, {hint: {$natural: 1}}).toArray();
        assert.gt(scanned.length, 0, tojson(pipeline));
        assert.sameMembers(scanned, coll.aggregate(pipeline).toArray(), when + ": " + tojson(pipeline));
    }
}
agree("at first");
for (const i of [0, 2, 4]) {
    const filter = filters[i];
    assert(/2dsphere/.test(tojson(coll.find(filter).explain().queryPlanner || coll.find(filter).explain())), tojson(coll.find(filter).explain()));
}

// Buckets lose some, take more, and begin anew.
assert.commandWorked(coll.deleteMany({m: {$in: [1, 2]}, n: {$gte: 50}}));
assert.eq(0, coll.find({m: 1, n: 60}).itcount());
for (let i = 200; i < 1300; i += 100) {
    const docs = [];
    for (let k = i; k < i + 100; k++) docs.push(measured(3, k), measured(2, k));
    assert.commandWorked(coll.insert(docs));
}
agree("after more");
assert(assert.commandWorked(coll.validate({full: true})).valid, tojson(coll.validate({full: true})));

// What is no place is refused as a whole, and what a bucket had stays.
const count = coll.countDocuments({});
const wrong = coll.insert({_id: -1, t: new Date(), m: 3, p: {at: {type: "Point", coordinates: [500, 0]}}});
assert.commandFailedWithCode(wrong, 16755);
assert.eq(count, coll.countDocuments({}));
assert.commandWorked(coll.dropIndex({"p.at": "2dsphere"}));
agree("with one index");
