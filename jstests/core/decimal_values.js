/**
 * Decimals hold thirty-four digits exactly, with their trailing zeros, infinities and NaN.
 * Fails when a digit is lost or made up, an exponent is normalized away, or special values are ordered differently.
 */
const coll = db.decimal_values;
coll.drop();
const texts = [
    "NaN",
    "-Infinity",
    "-9.999999999999999999999999999999999E+6144",
    "-1.5",
    "-1E-6176",
    "0",
    "1E-6176",
    "0.10",
    "0.3",
    "1234567890123456789012345678901234",
    "9.999999999999999999999999999999999E+6144",
    "Infinity",
];
texts.forEach((text, i) => assert.commandWorked(coll.insert({_id: i, d: NumberDecimal(text)})));

// What went in comes out, digit for digit, in this order.
assert.eq(texts.map(text => 'NumberDecimal("' + text + '")'), coll.find().sort({d: 1}).toArray().map(doc => tojson(doc.d)));
assert.commandWorked(coll.createIndex({d: 1}));
assert.eq(texts.map(text => 'NumberDecimal("' + text + '")'), coll.find().sort({d: 1}).hint({d: 1}).toArray().map(doc => tojson(doc.d)));

// Equal values with different digits are one key but stay what they are.
assert.eq([7], coll.find({d: NumberDecimal("0.1")}).toArray().map(doc => doc._id));
assert.eq('NumberDecimal("0.10")', tojson(coll.findOne({d: NumberDecimal("0.1000")}).d));
assert.eq([0], coll.find({d: NumberDecimal("NaN")}).toArray().map(doc => doc._id));
assert.eq([0], coll.find({d: NaN}).toArray().map(doc => doc._id));
assert.eq([11], coll.find({d: Infinity}).toArray().map(doc => doc._id));
assert.eq([5], coll.find({d: 0}).toArray().map(doc => doc._id));

// Arithmetic is decimal.
assert.commandWorked(coll.update({_id: 7}, {$inc: {d: NumberDecimal("0.20")}}));
assert.eq('NumberDecimal("0.30")', tojson(coll.findOne({_id: 7}).d));
assert.eq([7, 8], coll.find({d: NumberDecimal("0.3")}).sort({_id: 1}).toArray().map(doc => doc._id));
assert.commandWorked(coll.update({_id: 9}, {$mul: {d: 2}}));
assert.eq('NumberDecimal("2469135780246913578024691357802468")', tojson(coll.findOne({_id: 9}).d));
