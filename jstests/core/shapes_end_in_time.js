/**
 * Queries by shapes of many edges or of many parts find what they find, with an index and without, and end with their time limit.
 * Fails if the edges of a ring are compared all with all, or a covering is made for each part: ten seconds and more without a look at a limit.
 */
import {endsInTime} from "jstests/libs/ends_in_time.js";

const places = db.shapes_end_in_time;
places.drop();

// Shapes of many edges, and of many parts.
const round = (n, x, y, r) => {
    const ring = [...Array(n).keys()].map(i => [x + Math.cos(i * 2 * Math.PI / n) * r, y + Math.sin(i * 2 * Math.PI / n) * r]);
    return [...ring, ring[0]];
};
const circle = {type: "Polygon", coordinates: [round(10000, 40, 20, 10)]};
const many = {type: "MultiPolygon", coordinates: [...Array(5000).keys()].map(i => [round(4, i * 7 % 160, i * 3 % 80, 0.4)])};
const points = [...Array(200).keys()].map(i => ({_id: i, at: {type: "Point", coordinates: [30 + i % 20, 10 + 2 * Math.floor(i / 20)]}}));
assert.commandWorked(places.insert(points));
const within = $geometry => ({find: places.getName(), filter: {at: {$geoIntersects: {$geometry}}}, batchSize: 1000});
const before = [circle, many].map(shape => endsInTime(db, within(shape), {whole: true}).cursor.firstBatch.map(doc => doc._id).sort());
assert.commandWorked(places.createIndex({at: "2dsphere"}));
const after = [circle, many].map(shape => endsInTime(db, within(shape), {whole: true}).cursor.firstBatch.map(doc => doc._id).sort());
assert.eq(before, after);
assert.gt(after[0].length, 10);
assert.gt(after[1].length, 0);
assert.commandWorked(places.insert({at: circle}));
// The boxes of all edges overlap, whichever way they are gone through.
const zigzag = [...Array(6000).keys()].map(i => [i % 2 * 30 + i / 500, i % 2 * 30 - i / 500]);
endsInTime(db, within({type: "Polygon", coordinates: [[...zigzag, [-40, 60], zigzag[0]]]}));

// Nor can anything end the work while a document is written, so there are only so many edges that may overlap; those of a ring
// of many do not.
const comb = [].concat(...[...Array(15000).keys()].map(i => [[i * 0.0005, 0], [i * 0.0005 + 10.00025, 10]]));
const insert = ring => endsInTime(db, {insert: places.getName(), documents: [{at: {type: "Polygon", coordinates: [ring]}}]}, {whole: true});
const refused = insert([...comb, [7.5, 0], [7.5, -1], [0, -1], [0, 0]]).writeErrors[0];
assert.eq(16755, refused.code);
assert(refused.errmsg.endsWith("Loop is not valid: Too many edges overlap to tell whether they cross"), refused.errmsg.slice(-200));
assert.eq([undefined, undefined], [round(100000, 0, 0, 5), round(100000, 70, 50, 5)].map(ring => insert(ring).writeErrors));

places.drop();
