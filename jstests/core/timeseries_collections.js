/**
 * A time series collection takes measurements and gives them back, by any query, while it keeps them in buckets.
 * Fails when a measurement is lost or doubled on its way through a bucket, a filter on meta or time leaves buckets out, or what the real
 * server refuses of time series is taken.
 *
 * @tags: [
 *   # Sharded time series are not implemented.
 *   assumes_unsharded_collection,
 * ]
 */
const name = "timeseries_collections";
const coll = db[name];
coll.drop();
const timeseries = {timeField: "t", metaField: "m"};
assert.commandWorked(db.createCollection(name, {timeseries}));
assert.commandWorked(db.createCollection(name, {timeseries}));
assert.commandFailedWithCode(db.createCollection(name, {timeseries: {timeField: "other"}}), ErrorCodes.NamespaceExists);

// Listed as what it is, and its buckets beside it.
const info = db.getCollectionInfos({name})[0];
assert.eq("timeseries", info.type);
assert.eq({...timeseries, granularity: "seconds", bucketMaxSpanSeconds: 3600}, info.options.timeseries);
assert(!info.info.hasOwnProperty("uuid"), tojson(info));
const buckets = db.getCollectionInfos({name: "system.buckets." + name})[0];
assert.eq("collection", buckets.type);
assert.eq(true, buckets.options.clusteredIndex);
assert.eq([{v: 2, key: {m: 1, t: 1}, name: "m_1_t_1"}], coll.getIndexes());

// 3,000 measurements of three sensors over some hours, out of order.
const start = ISODate("2024-03-01T10:00:00Z").getTime();
const all = [...Array(3000).keys()].map(i => ({_id: i, t: new Date(start + ((i * 7919) % 3000) * 5000), m: {s: i % 3}, v: i, w: [i, 1]}));
assert.commandWorked(coll.insert(all.slice(0, 2500)));
all.slice(2500, 2600).forEach(d => assert.commandWorked(coll.insert(d)));
assert.commandWorked(coll.insert(all.slice(2600), {ordered: false}));
function same(filter, test) {
    const got = coll.find(filter).toArray().map(d => d._id).sort((a, b) => a - b);
    assert.eq(all.filter(test).map(d => d._id), got, tojson(filter));
    assert.eq(got.length, coll.countDocuments(filter));
}
assert.eq(3000, coll.find().itcount());
assert.eq(3000, coll.find().batchSize(7).itcount());
same({}, () => true);
same({"m.s": 1}, d => d.m.s === 1);
same({m: {s: 2}, v: {$lt: 100}}, d => d.m.s === 2 && d.v < 100);
const at = new Date(start + 5000 * 1234);
for (const [operator, test] of [["$gt", (a, b) => a > b], ["$gte", (a, b) => a >= b], ["$lt", (a, b) => a < b],
                                ["$lte", (a, b) => a <= b], ["$eq", (a, b) => a.getTime() === b.getTime()]]) {
    same({t: {[operator]: at}}, d => test(d.t, at));
}
same({t: at}, d => d.t.getTime() === at.getTime());
same({t: {$in: [at, new Date(0)]}}, d => d.t.getTime() === at.getTime());
same({$or: [{"m.s": 0, v: 3}, {t: at}]}, d => d.v === 3 || d.t.getTime() === at.getTime());
same({w: 17}, d => d.v === 17);
assert.eq({t: all[5].t, m: {s: 2}, _id: 5, v: 5, w: [5, 1]}, coll.findOne({_id: 5}));
assert.eq([2999, 2998], coll.find().sort({v: -1}).limit(2).toArray().map(d => d.v));
const sums = coll.aggregate([{$group: {_id: "$m.s", n: {$sum: 1}, v: {$sum: "$v"}}}, {$sort: {_id: 1}}]).toArray();
assert.eq([1000, 1000, 1000], sums.map(d => d.n));
assert.eq(3000 * 2999 / 2, sums.reduce((n, d) => n + d.v, 0));
assert.eq([0, 1, 2], coll.distinct("m.s").sort());
assert.eq(1, db.runCommand({aggregate: name, pipeline: [{$limit: 1}, {$lookup: {from: name, localField: "_id", foreignField: "_id", as: "self"}}], cursor: {}}).cursor.firstBatch[0].self.length);

// A view over it, and few buckets for many measurements.
db[name + "_view"].drop();
assert.commandWorked(db.createView(name + "_view", name, [{$match: {"m.s": 0}}]));
assert.eq(1000, db[name + "_view"].find().itcount());
const held = db["system.buckets." + name].find().itcount();
assert.lt(held, 60);
const stats = coll.stats();
assert.eq(held, stats.timeseries.bucketCount);

// What is no measurement.
for (const bad of [{m: 1}, {t: 5}, {t: "2024-01-01"}, {t: null}]) {
    assert.commandFailedWithCode(coll.insert(bad), ErrorCodes.BadValue);
}
const mixed = db.runCommand({insert: name, documents: [{_id: "a", t: at}, {_id: "b"}, {_id: "c", t: at}], ordered: false});
assert.eq([2, 1, 1], [mixed.n, mixed.writeErrors.length, mixed.writeErrors[0].index]);
const ordered = db.runCommand({insert: name, documents: [{_id: "d", t: at}, {_id: "e"}, {_id: "f", t: at}]});
assert.eq([1, 1, 1], [ordered.n, ordered.writeErrors.length, ordered.writeErrors[0].index]);
assert.eq(["a", "c", "d"], coll.find({m: {$exists: false}}).toArray().map(d => d._id).sort());

// Deletes by any filter.
const removed = assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {m: {$exists: false}}, limit: 0}]}));
assert.eq(3, removed.n);
assert.eq(1, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {v: 10}, limit: 1}]})).n);
assert.eq(500, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {v: {$gte: 2500}}, limit: 0}]})).n);
assert.eq(2499, coll.find().itcount());
assert.eq(0, coll.find({v: 10}).itcount());
assert.eq(11, db.runCommand({findAndModify: name, query: {v: 11}, remove: true}).value.v);
assert.eq(2498, coll.find().itcount());

// Updates of the meta field alone.
assert.commandWorked(db.runCommand({update: name, updates: [{q: {"m.s": 1}, u: {$set: {"m.s": "one"}}, multi: true}]}));
assert.eq(832, coll.find({"m.s": "one"}).itcount());
for (const u of [{q: {v: 1}, u: {$set: {m: 1}}, multi: true}, {q: {}, u: {$set: {v: 1}}, multi: true}, {q: {}, u: {$set: {m: 1}}},
                 {q: {}, u: [{$set: {m: 1}}], multi: true}, {q: {}, u: {$set: {m: 1}}, multi: true, upsert: true}]) {
    assert.commandFailedWithCode(db.runCommand({update: name, updates: [u]}), ErrorCodes.InvalidOptions, tojson(u));
}

// Indexes in terms of measurements.
assert.commandWorked(coll.createIndex({v: 1}));
assert.commandWorked(coll.createIndex({"m.s": 1, t: -1}));
assert.eq([{"m": 1, t: 1}, {v: 1}, {"m.s": 1, t: -1}], coll.getIndexes().map(i => i.key));
assert.commandFailedWithCode(coll.createIndex({x: 1}, {unique: true}), ErrorCodes.InvalidOptions);
same2({v: {$lt: 7}}, [0, 1, 2, 3, 4, 5, 6]);
function same2(filter, expected) {
    assert.eq(expected, coll.find(filter).toArray().map(d => d.v).sort((a, b) => a - b));
}
assert.eq(2, coll.find({"m.s": 0, v: {$lt: 6}}).hint({m: 1, t: 1}).itcount());
assert.commandWorked(coll.dropIndex({v: 1}));
assert.eq(2, coll.getIndexes().length);

// collMod: coarser only; expiry.
assert.commandWorked(db.runCommand({collMod: name, timeseries: {granularity: "minutes"}}));
assert.commandFailedWithCode(db.runCommand({collMod: name, timeseries: {granularity: "seconds"}}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(db.runCommand({collMod: name, validator: {}}), ErrorCodes.InvalidOptions);
assert.commandWorked(db.runCommand({collMod: name, expireAfterSeconds: 1e6}));
const changed = db.getCollectionInfos({name})[0].options;
assert.eq(["minutes", 86400, 1e6], [changed.timeseries.granularity, changed.timeseries.bucketMaxSpanSeconds, Number(changed.expireAfterSeconds)]);
assert.commandWorked(coll.insert({_id: "late", t: at, m: {s: 0}, v: -1}));
same2({v: {$lt: 1}}, [-1, 0]);
assert.commandWorked(coll.validate());

// What cannot be done with it.
assert.commandFailedWithCode(coll.renameCollection(name + "_renamed"), ErrorCodes.CommandNotSupportedOnView);
assert.commandFailedWithCode(db.runCommand({convertToCapped: name, size: 4096}), ErrorCodes.CommandNotSupportedOnView);
assert.commandFailedWithCode(db.runCommand({create: name + "_2", timeseries, capped: true, size: 4096}), ErrorCodes.InvalidOptions);
// Drivers send it without being asked.
assert.commandWorked(db.runCommand({create: name + "_3", timeseries, capped: false}));
assert.commandFailedWithCode(db.runCommand({create: "system.buckets.no", capped: true, size: 4096}), ErrorCodes.IllegalOperation);

// A filter that cannot be evaluated while others wait.
assert.commandWorked(coll.insert(Array.from({length: 20}, (_, i) => ({t: at, m: "js", v: i}))));
assert.eq(5, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {m: "js", $where: "this.v >= 15"}, limit: 0}]})).n);
assert.eq(1, assert.commandWorked(db.runCommand({delete: name, deletes: [{q: {m: "js", $where: "this.v > 2"}, limit: 1}]})).n);
assert.eq([0, 1, 2], coll.find({m: "js", v: {$lt: 3}}).toArray().map((d) => d.v).sort());
assert.eq(14, coll.find({m: "js"}).itcount());

// What is in the bucket as it is may have an index of any kind but text, and a sparse one.
const indexed = db[name + "_indexed"];
indexed.drop();
assert.commandWorked(db.createCollection(indexed.getName(), {timeseries}));
for (const [key, options] of [[{m: "hashed"}, {}], [{"m.$**": 1}, {}], [{t: 1, m: -1}, {sparse: true}]]) {
    assert.commandWorked(indexed.createIndex(key, options), tojson(key));
}
assert.commandFailedWithCode(indexed.createIndex({v: "hashed"}), ErrorCodes.CannotCreateIndex);
assert.commandFailedWithCode(indexed.createIndex({m: 1, v: 1}, {sparse: true}), ErrorCodes.InvalidOptions);
assert.commandWorked(indexed.insert([1, 2].map((s) => ({t: new Date(start), m: {s}, v: s}))));
assert.eq([1], indexed.find({m: {s: 1}}).toArray().map((d) => d.v));
assert.eq([2], indexed.find({"m.s": 2}).toArray().map((d) => d.v));

// A granularity may be given with the span that it has.
const rebucket = (bucketMaxSpanSeconds) => db.runCommand(
    {collMod: indexed.getName(), timeseries: {granularity: "hours", bucketMaxSpanSeconds}});
assert.commandFailedWithCode(rebucket(3600), ErrorCodes.InvalidOptions);
assert.commandWorked(rebucket(2592000));
assert(indexed.drop());

// Both are gone together.
db[name + "_view"].drop();
assert(coll.drop());
assert.eq([], db.getCollectionInfos({name: {$in: [name, "system.buckets." + name]}}));
assert.commandWorked(coll.insert({t: 1}));

// $out reads its options before it looks at the target, and before there is anything to write.
const out = (options, filter) => db.runCommand({
    aggregate: name,
    pipeline: [{$match: filter || {}}, {$out: {db: db.getName(), coll: name, timeseries: options}}],
    cursor: {},
});
assert.commandFailedWithCode(out({timeField: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(out({timeField: "t", granularity: "days"}), ErrorCodes.BadValue);
assert.commandFailedWithCode(out({timeField: "t", bucketMaxSpanSeconds: 60}, {none: 1}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(out({}), 40414);
assert.commandFailedWithCode(out({timeField: "t", other: 1}), 40415);
assert.commandFailedWithCode(out({timeField: "t"}), 7268700);
coll.drop();
