/**
 * A measurement that an index of its buckets refuses is refused by itself: those before it are written, those behind it as the command says,
 * and the error bears its number.
 * Fails if the measurements that share its bucket are refused with it, or one is written that stands behind the error of an ordered command.
 *
 * @tags: [
 *   # Sharded time series are not implemented.
 *   assumes_unsharded_collection,
 * ]
 */
const name = "timeseries_refusals";
const coll = db[name];
coll.drop();
assert.commandWorked(db.createCollection(name, {timeseries: {timeField: "t", metaField: "m"}}));
assert.commandWorked(coll.createIndex({p: "2dsphere"}));
assert.commandWorked(coll.createIndex({"m.at": "2dsphere"}));
assert.commandWorked(coll.createIndex({"m.a": 1, "m.b": 1}));
let count = 0;
const at = lng => ({type: "Point", coordinates: [lng, 0]});
const measured = (m, lng) => ({_id: count++, t: new Date(1700000000000 + count), m: {s: m}, p: at(lng)});
const good = m => measured(m, 1), bad = m => measured(m, 500);
// Of their meta: a place that is none, and two arrays at once.
const nowhere = () => ({_id: count++, t: new Date(), m: {at: at(500)}});
const arrays = () => ({_id: count++, t: new Date(), m: {a: [1, 2], b: [1, 2]}});

function inserts(documents, ordered, written, failed) {
    const reply = assert.commandWorkedIgnoringWriteErrors(db.runCommand({insert: name, documents, ordered}));
    const shown = () => tojson(documents.map(d => [d.m, d.p])) + " " + tojson(reply);
    assert.eq(written.length, reply.n, shown);
    assert.eq(failed, (reply.writeErrors || []).map(e => e.index), shown);
    const all = documents.map(d => d._id);
    const found = coll.find({_id: {$in: all}}).toArray().map(d => d._id).sort((a, b) => a - b);
    assert.eq(written.map(i => all[i]), found, shown);
}
inserts([good("b"), bad("a"), good("b")], true, [0], [1]);
inserts([good("a"), bad("a")], true, [0], [1]);
inserts([good("a"), bad("a"), good("a")], false, [0, 2], [1]);
inserts([bad("c"), good("c")], true, [], [0]);
for (const refused of [nowhere, arrays]) {
    inserts([good("b"), refused(), good("b")], true, [0], [1]);
    inserts([refused(), good("b"), refused()], false, [1], [0, 2]);
}
const many = [...Array(1500).keys()].map(i => i % 500 === 7 ? bad("d") : good("d"));
const refused = [7, 507, 1007];
inserts(many, false, [...many.keys()].filter(i => !refused.includes(i)), refused);
assert(assert.commandWorked(coll.validate({full: true})).valid);
