/**
 * What an operation costs grows with what it is about, however long a string or wide a document that is.
 * Fails if matches in a string are counted from its beginning each time, or each field of an update looks through all others: four times
 * as much took sixteen times as long.
 */
const coll = db.long_inputs_take_linear_time;

/** The least that it has taken of some attempts. */
function least(what) {
    return Math.min(...[0, 1, 2].map(() => {
        const begun = Date.now();
        what();
        return Date.now() - begun;
    }));
}

function grows(what, n) {
    const [small, large] = [least(() => what(n)), least(() => what(4 * n))];
    // What takes no time to speak of says nothing.
    assert.lt(large, 9 * Math.max(small, 100), `${what.name}: ${small} ms for ${n}, ${large} ms for ${4 * n}`);
}

coll.drop();
const lengths = [50000, 200000];
for (const n of lengths) {
    // Characters of two bytes: places in the string are counted in characters.
    assert.commandWorked(coll.insert({_id: n, s: "ä".repeat(n)}));
}
function matchesOfARegex(n) {
    const found = {$size: {$regexFindAll: {input: "$s", regex: "ä"}}};
    assert.eq([{_id: n, found}].length, coll.aggregate([{$match: {_id: n}}, {$project: {found}}]).itcount());
}
grows(matchesOfARegex, lengths[0]);

function fieldsSet(n) {
    const fields = {};
    for (let i = 0; i < n; i++) {
        fields[`f${i}`] = i;
    }
    assert.commandWorked(coll.update({_id: "wide"}, {$set: fields}, {upsert: true}));
    assert.commandWorked(coll.update({_id: "wide"}, [{$set: fields}]));
    assert.commandWorked(coll.update({_id: "wide"}, {$unset: fields}));
}
grows(fieldsSet, 10000);
coll.drop();
