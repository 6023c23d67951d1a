/**
 * The nearest places are found without a look at those far away, and all of them come, each once, the nearest first.
 * Fails when a place on the edge of what was searched before is missed or returned twice, or when everything is scanned for the
 * first few.
 * @tags: [assumes_against_mongod_not_mongos]
 */
const coll = db.geo_nearest_in_rings;
coll.drop();
const R = 6378100;
const radians = d => d * Math.PI / 180;
// The haversine of two points of degrees, in metres.
const metres = ([a, b], [c, d]) => {
    const h = Math.sin(radians(d - b) / 2) ** 2 + Math.cos(radians(b)) * Math.cos(radians(d)) * Math.sin(radians(c - a) / 2) ** 2;
    return 2 * R * Math.asin(Math.sqrt(h));
};
Random.setRandomSeed(7);
const center = [3, 4];
const places = [];
for (let i = 0; i < 3000; i++) {
    // As many within ten metres of the centre as half around the earth.
    const reach = Math.pow(10, -5 + Random.rand() * 6.5);
    const at = [center[0] + (Random.rand() - 0.5) * reach, Math.max(-89, Math.min(89, center[1] + (Random.rand() - 0.5) * reach))];
    places.push({_id: i, at: {type: "Point", coordinates: at}, flat: at, n: i % 3});
}
// Several places in one document: the nearest of them counts.
for (let i = 0; i < 50; i++) {
    const [near, far] = [places[i * 7].flat, places[i * 11].flat];
    places.push({_id: 3000 + i, at: {type: "MultiPoint", coordinates: [far, near]}, flat: [far, near], n: 0});
}
assert.commandWorked(coll.insert(places));
assert.commandWorked(coll.createIndex({at: "2dsphere"}));
assert.commandWorked(coll.createIndex({flat: "2d"}));

const points = p => Array.isArray(p.flat[0]) ? p.flat : [p.flat];
const onSphere = p => Math.min(...points(p).map(at => metres(center, at)));
const onPlane = p => Math.min(...points(p).map(([x, y]) => Math.hypot(x - center[0], y - center[1])));

function check(filter, distance, least, greatest) {
    const found = coll.find(filter).toArray();
    const within = places.filter(p => (!("n" in filter) || p.n === filter.n)).filter(p => {
        const ds = points(p).map(at => distance({flat: at}));
        return ds.some(d => d >= least && d <= greatest);
    });
    assert.eq(within.length, found.length, tojson(filter));
    assert.eq(new Set(found.map(p => p._id)).size, found.length, "each once");
    for (let i = 1; i < found.length; i++) {
        const [a, b] = [distance(found[i - 1]), distance(found[i])];
        assert.lte(a, b * (1 + 1e-6) + 1e-9, tojson([filter, i, found[i - 1], found[i]]));
    }
}

const geometry = {type: "Point", coordinates: center};
check({at: {$near: {$geometry: geometry}}}, onSphere, 0, Infinity);
check({at: {$near: {$geometry: geometry, $maxDistance: 5000}}, n: 1}, onSphere, 0, 5000);
check({flat: {$near: center}}, onPlane, 0, Infinity);
check({flat: {$near: center, $maxDistance: 0.5}, n: 2}, onPlane, 0, 0.5);
const beyond = coll.find({at: {$near: {$geometry: geometry, $minDistance: 40, $maxDistance: 1e6}}, n: 1}).toArray();
assert.eq(places.filter(p => p.n === 1 && onSphere(p) >= 40 && onSphere(p) <= 1e6).length, beyond.length);
assert.gte(onSphere(beyond[0]), 40);
check({at: {$nearSphere: center}}, onSphere, 0, Infinity);

// A query that crosses the limit of a batch, with skip, goes on where it was.
const all = coll.find({at: {$near: {$geometry: geometry}}}).batchSize(7).toArray().map(p => p._id);
assert.eq(all.slice(20, 40), coll.find({at: {$near: {$geometry: geometry}}}).skip(20).limit(20).toArray().map(p => p._id));

for (const filter of [{at: {$near: {$geometry: geometry}}}, {flat: {$near: center}}]) {
    const stats = coll.find(filter).limit(10).explain("executionStats").executionStats;
    assert.eq(10, stats.nReturned);
    assert.lt(stats.totalDocsExamined, 1000, tojson(stats));
}
