/**
 * $graphLookup follows references from document to document as far as they lead.
 * Fails when a node is found twice, a cycle never ends, the depth is counted wrongly, or a filter does not stop the walk.
 */
const coll = db.graph_lookup;
coll.drop();
assert.commandWorked(coll.insert([
    {_id: "ceo"},
    {_id: "cto", boss: "ceo", site: "x"},
    {_id: "cfo", boss: "ceo", site: "y"},
    {_id: "dev1", boss: "cto", site: "x"},
    {_id: "dev2", boss: "cto", site: "y"},
    {_id: "intern", boss: "dev1", site: "x"},
    {_id: "a", boss: "b"},
    {_id: "b", boss: "a"},
]));

function walk(id, options) {
    const pipeline = [
        {$match: {_id: id}},
        {$graphLookup: Object.assign({from: coll.getName(), startWith: "$_id", connectFromField: "_id", connectToField: "boss", as: "r"}, options)},
    ];
    return coll.aggregate(pipeline).toArray()[0].r;
}
function ids(result) {
    return result.map(doc => doc._id).sort();
}
assert.eq(["cfo", "cto", "dev1", "dev2", "intern"], ids(walk("ceo")));
assert.eq(["intern"], ids(walk("dev1")));
assert.eq([], walk("intern"));
assert.eq(["cfo", "cto"], ids(walk("ceo", {maxDepth: 0})));
assert.eq(["cfo", "cto", "dev1", "dev2"], ids(walk("ceo", {maxDepth: NumberLong(1)})));
assert.eq(["a", "b"], ids(walk("a")));
assert.eq(["cto", "dev1", "intern"], ids(walk("ceo", {restrictSearchWithMatch: {site: "x"}})));

const depths = {};
for (const doc of walk("ceo", {depthField: "d"})) {
    depths[doc._id] = Number(doc.d);
}
assert.eq({cfo: 0, cto: 0, dev1: 1, dev2: 1, intern: 2}, Object.fromEntries(Object.keys(depths).sort().map(key => [key, depths[key]])));

// Upwards, and from an array of starting points.
assert.eq(["ceo", "cto", "dev1"], ids(walk("intern", {startWith: "$boss", connectFromField: "boss", connectToField: "_id"})));
assert.eq(["a", "b", "intern"], ids(walk("ceo", {startWith: ["dev1", "a"]})));

function refused(codes, options) {
    const stage = Object.assign({from: coll.getName(), startWith: "$_id", connectFromField: "_id", connectToField: "boss", as: "r"}, options);
    for (const name of Object.keys(stage)) {
        if (stage[name] === undefined) {
            delete stage[name];
        }
    }
    assert.commandFailedWithCode(db.runCommand({aggregate: coll.getName(), pipeline: [{$graphLookup: stage}], cursor: {}}), codes, () => tojson(options));
}
refused(40105, {as: undefined});
refused(40105, {startWith: undefined});
refused([40105, ErrorCodes.FailedToParse], {from: undefined});
refused(40100, {maxDepth: "x"});
refused(40101, {maxDepth: -1});
refused(40102, {maxDepth: 1.5});
refused(40103, {as: 1});
refused(40104, {unheardOf: 1});
refused(40185, {restrictSearchWithMatch: 1});
refused([16410], {as: "$r"});
