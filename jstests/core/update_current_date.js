/**
 * $currentDate stamps documents with the server's clock, as a date or a timestamp.
 * Fails when the stamp has another type, is far from now, or an unknown type is taken.
 */
const coll = db.update_current_date;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));

const before = new Date(Date.now() - 60 * 1000);
assert.commandWorked(coll.update({_id: 1}, {
    $currentDate: {a: true, b: {$type: "date"}, c: {$type: "timestamp"}, "o.d": true, e: false}
}));
const after = new Date(Date.now() + 60 * 1000);
const doc = coll.findOne();
for (const date of [doc.a, doc.b, doc.o.d, doc.e]) {
    assert(date instanceof Date, tojson(doc));
    assert.lt(before, date);
    assert.gt(after, date);
}
assert(doc.c instanceof Timestamp, tojson(doc));
assert.lt(before.getTime() / 1000, doc.c.t);
assert.gt(after.getTime() / 1000, doc.c.t);
assert.eq(doc.a, doc.b);

// An upsert is stamped too.
assert.commandWorked(coll.update({_id: 2}, {$currentDate: {at: true}, $setOnInsert: {x: 1}}, {upsert: true}));
assert(coll.findOne({_id: 2}).at instanceof Date);

for (const argument of [1, "date", null, {}, {$type: "int"}, {$type: 1}, {$type: "date", x: 1}, {type: "date"}]) {
    assert.commandFailedWithCode(coll.update({_id: 1}, {$currentDate: {z: argument}}), ErrorCodes.BadValue, () => tojson(argument));
}
assert(!coll.findOne({_id: 1}).hasOwnProperty("z"));
