/**
 * Documents nest one hundred and eighty levels deep and no further, so that no reader overflows.
 * Fails when a deeper document is stored, or the server cannot work with the deepest one.
 */
const coll = db.nesting_limit;
coll.drop();

function nested(depth) {
    let doc = {leaf: 1};
    for (let i = 1; i < depth; i++) {
        doc = {n: doc};
    }
    return doc;
}
assert.commandWorked(coll.insert({_id: 1, d: nested(170)}));
const path = "d." + "n.".repeat(169) + "leaf";
assert.eq(1, coll.find({[path]: 1}).itcount());
assert.commandWorked(coll.update({_id: 1}, {$set: {[path]: 2}}));
assert.eq(1, coll.find({[path]: 2}).itcount());
assert.eq(nested(170).n.n.n.n !== undefined, coll.findOne({_id: 1}).d.n.n.n.n !== undefined);

// Two hundred levels are refused on the wire or by the command.
const deep = assert.throws(() => assert.commandWorked(coll.insert({_id: 2, d: nested(250)})));
assert.contains(deep.code, [ErrorCodes.Overflow, ErrorCodes.InvalidBSON, ErrorCodes.BadValue, 17279], () => tojson(deep));
assert.eq(null, coll.findOne({_id: 2}));

// Nor can an update dig deeper.
assert.commandFailedWithCode(coll.update({_id: 1}, {$set: {[path.replace(/leaf$/, "x.".repeat(30) + "y")]: 1}}),
                             [ErrorCodes.Overflow, ErrorCodes.PathNotViable]);
