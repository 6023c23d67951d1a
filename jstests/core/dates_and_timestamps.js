/**
 * Dates are milliseconds around 1970 in sixty-four bits, timestamps are another type that only looks alike.
 * Fails when a date before 1970 or far away is mangled, the two types match each other, or an empty timestamp is not filled in.
 */
const coll = db.dates_and_timestamps;
coll.drop();
const dates = [new Date(-62135596800000), new Date(-1), new Date(0), new Date(1500000000123), new Date(253402300799999)];
dates.forEach((date, i) => assert.commandWorked(coll.insert({_id: i, at: date})));
assert.eq(dates.map(date => date.getTime()), coll.find().sort({at: 1}).toArray().map(doc => doc.at.getTime()));
assert.eq([0, 1], coll.find({at: {$lt: new Date(0)}}).sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq([3], coll.find({at: ISODate("2017-07-14T02:40:00.123Z")}).toArray().map(doc => doc._id));
assert.eq([2, 3], coll.find({at: {$gte: new Date(0), $lt: ISODate("2020-01-01")}}).sort({_id: 1}).toArray().map(doc => doc._id));

// Neither a timestamp nor a number is a date.
assert.commandWorked(coll.insert([{_id: "ts", at: Timestamp(1500000000, 5)}, {_id: "number", at: 0}]));
assert.eq(["ts"], coll.find({at: {$type: "timestamp"}}).toArray().map(doc => doc._id));
assert.eq(["ts"], coll.find({at: {$gte: Timestamp(1, 0)}}).toArray().map(doc => doc._id));
assert.eq(["number"], coll.find({at: 0}).toArray().map(doc => doc._id));
assert.eq(5, coll.find({at: {$gte: new Date(-1e15)}}).itcount());

// An empty timestamp at the top level is the server's clock; within a document it stays empty.
assert.commandWorked(coll.insert({_id: "empty", t: Timestamp(0, 0), o: {t: Timestamp(0, 0)}}));
const filled = coll.findOne({_id: "empty"});
assert.neq(Timestamp(0, 0), filled.t);
assert.lt(Date.now() / 1000 - 600, filled.t.t);
assert.eq(Timestamp(0, 0), filled.o.t);
