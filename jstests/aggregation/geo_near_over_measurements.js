/**
 * $geoNear orders the measurements of a time series by distance, by a place among the measurements or in the meta field.
 * Fails when a measurement is missing, is measured wrongly, or the stage is refused.
 */
const coll = db.geo_near_over_measurements;
coll.drop();
assert.commandWorked(db.createCollection(coll.getName(), {timeseries: {timeField: "t", metaField: "m"}}));
const at = (x, y) => ({type: "Point", coordinates: [x, y]});
assert.commandWorked(coll.insert([...Array(10).keys()].map(i => ({
    _id: i, t: new Date(2024, 0, 1, 0, i), m: {place: at(0, i % 2), parity: i % 2}, place: at(i, 0),
}))));
assert.commandWorked(coll.insert({_id: "nowhere", t: new Date(2024, 0, 1), m: {parity: 0}}));

function near(spec, ...stages) {
    return coll.aggregate([{$geoNear: Object.assign({near: at(3.2, 0), distanceField: "d.away"}, spec)}, ...stages]).toArray();
}
const ids = rows => rows.map(row => row._id);
assert.eq([3, 4, 2, 5, 1, 6, 0, 7, 8, 9], ids(near({key: "place"})));
assert.eq([3, 4, 2], ids(near({key: "place"}, {$limit: 3})));
assert.eq([4, 2, 6], ids(near({key: "place", query: {"m.parity": 0}}, {$limit: 3})));
// A degree of the equator is about 111 km.
assert.eq([3, 4], ids(near({key: "place", maxDistance: 100000})));
assert.eq([7, 8, 9], ids(near({key: "place", minDistance: 400000})));
const first = near({key: "place", includeLocs: "where", distanceMultiplier: 0.001}, {$limit: 1})[0];
assert.eq(["_id", "d", "m", "place", "t", "where"], Object.keys(first).sort());
assert.lt(Math.abs(22.26 - first.d.away), 0.01);
assert.eq(at(3, 0), first.where);

const byMeta = near({key: "m.place", near: at(0, 0)}).map(row => row.m.parity);
assert.eq([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], byMeta);

const refused = (spec, code) => assert.commandFailedWithCode(
    db.runCommand({aggregate: coll.getName(), pipeline: [{$geoNear: spec}], cursor: {}}), code);
refused({near: at(0, 0), distanceField: "d"}, 5860206);
refused({key: "place", distanceField: "d"}, 5860400);
refused({near: at(0, 0), key: "place", distanceField: "d", maxDistance: -1}, ErrorCodes.BadValue);
