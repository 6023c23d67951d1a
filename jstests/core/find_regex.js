/**
 * Patterns search strings, with options, in arrays and within $in and $not.
 * Fails when an option is ignored, a pattern matches other types than strings and equal patterns, or an invalid one is taken.
 */
const coll = db.find_regex;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: 0, s: "Apple"},
    {_id: 1, s: "apple pie"},
    {_id: 2, s: "crab\napple"},
    {_id: 3, s: ["pear", "APPLE"]},
    {_id: 4, s: /^apple/},
    {_id: 5, s: 5},
    {_id: 6, s: "äpfel"},
    {_id: 7},
    {_id: 8, s: "a.c"},
]));

function ids(filter) {
    return coll.find(filter).sort({_id: 1}).toArray().map(doc => doc._id);
}

assert.eq([1, 4], ids({s: /^apple/}));
assert.eq([0, 1, 3], ids({s: /^apple/i}));
assert.eq([1, 2], ids({s: /^apple/m}));
assert.eq([2], ids({s: /crab.apple/s}));
assert.eq([], ids({s: /crab.apple/}));
assert.eq([0, 1, 3], ids({s: {$regex: "^a p p l e  # comment", $options: "ix"}}));
assert.eq([0, 1, 3], ids({s: {$regex: /^apple/, $options: "i"}}));
assert.eq([6], ids({s: /^.pfel$/}));
assert.eq([8], ids({s: /^a\.c$/}));
assert.eq([3], ids({s: {$in: [/^pe/]}}));
assert.eq([3, 8], ids({s: {$in: [/^pe/, "a.c"]}}));
assert.eq([2, 4, 5, 6, 7, 8], ids({s: {$not: /^apple/i}}));
assert.eq([0, 2, 3, 5, 6, 7, 8], ids({s: {$nin: [/^apple/]}}));
assert.eq([1], ids({s: {$regex: "pie$", $ne: "x"}}));

// The same through an index.
assert.commandWorked(coll.createIndex({s: 1}));
assert.eq([1, 4], coll.find({s: /^apple/}).hint({s: 1}).sort({_id: 1}).toArray().map(doc => doc._id));
assert.eq([0, 1, 3], coll.find({s: /^apple/i}).hint({s: 1}).sort({_id: 1}).toArray().map(doc => doc._id));

const name = coll.getName();
assert.commandFailedWithCode(db.runCommand({find: name, filter: {s: {$regex: "("}}}), 51091);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {s: {$regex: "a", $options: "q"}}}), 51108);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {s: {$regex: 5}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {s: {$options: "i"}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({find: name, filter: {s: {$in: [{$regex: "a"}]}}}), ErrorCodes.BadValue);
