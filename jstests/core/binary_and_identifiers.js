/**
 * Binary data, UUIDs and ObjectIds keep their bytes and subtype, and sort by length, subtype and bytes.
 * Fails when a subtype is lost or ignored in comparisons, or the order is another.
 */
const coll = db.binary_and_identifiers;
coll.drop();
const uuid = UUID("01234567-89ab-cdef-0123-456789abcdef");
const id = ObjectId("65a1b2c3d4e5f60718293a4b");
assert.commandWorked(coll.insert([
    {_id: 0, b: BinData(0, "")},
    {_id: 1, b: BinData(0, "AAE=")},
    {_id: 2, b: BinData(5, "AAE=")},
    {_id: 3, b: BinData(128, "AAE=")},
    {_id: 4, b: BinData(0, "AQE=")},
    {_id: 5, b: BinData(0, "AAAA")},
    {_id: 6, b: uuid},
    {_id: 7, b: id},
]));

assert.eq([1], coll.find({b: BinData(0, "AAE=")}).toArray().map(doc => doc._id));
assert.eq([2], coll.find({b: BinData(5, "AAE=")}).toArray().map(doc => doc._id));
assert.eq([6], coll.find({b: uuid}).toArray().map(doc => doc._id));
assert.eq([7], coll.find({b: id}).toArray().map(doc => doc._id));
// By length first, then by subtype, then by bytes; ObjectIds come after all of them.
assert.eq([0, 1, 4, 2, 3, 5, 6, 7], coll.find().sort({b: 1}).toArray().map(doc => doc._id));
assert.eq([5, 6], coll.find({b: {$gt: BinData(128, "AAE=")}}).sort({b: 1}).toArray().map(doc => doc._id));

const read = coll.find().sort({_id: 1}).toArray();
assert.eq('UUID("01234567-89ab-cdef-0123-456789abcdef")', tojson(read[6].b));
assert.eq('ObjectId("65a1b2c3d4e5f60718293a4b")', tojson(read[7].b));
assert.eq(128, read[3].b.subtype());
assert.eq("AAE=", read[3].b.base64());
assert.eq(ISODate("2024-01-12T21:44:35Z"), id.getTimestamp());
