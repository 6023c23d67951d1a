/**
 * $listClusterCatalog lists the collections of a database, or on admin of all, with what is sharded; stages of a search service say that there is none.
 * Fails when a collection is missing or told twice, a sharded one is not told apart, or a malformed argument is taken.
 */
const own = db.getSiblingDB("list_cluster_catalog");
assert.commandWorked(own.dropDatabase());
assert.commandWorked(own.createCollection("plain", {capped: true, size: 4096}));
assert.commandWorked(own.createView("view", "plain", [{$match: {a: 1}}]));
const isRouter = db.hello().msg === "isdbgrid";
if (isRouter) {
    assert.commandWorked(db.adminCommand({shardCollection: own.getName() + ".sharded", key: {k: 1}}));
} else {
    assert.commandWorked(own.createCollection("sharded"));
}
const list = (database, spec = {}) =>
    assert.commandWorked(database.runCommand({aggregate: 1, pipeline: [{$listClusterCatalog: spec}, {$match: {db: own.getName()}}], cursor: {}}))
        .cursor.firstBatch.filter((d) => !d.ns.includes(".system.")).sort((a, b) => (a.ns < b.ns ? -1 : 1));
for (const database of [own, db.getSiblingDB("admin")]) {
    const [plain, sharded, view] = list(database);
    assert.eq([own.getName() + ".plain", "collection", true, false], [plain.ns, plain.type, plain.options.capped, plain.sharded], tojson(plain));
    assert.eq(isRouter, sharded.sharded, tojson(sharded));
    assert.eq({_id: 1}, sharded.idIndex.key);
    assert.eq(["view", "plain", true], [view.type, view.options.viewOn, view.info.readOnly], tojson(view));
}
assert.eq(0, list(db.getSiblingDB("list_cluster_catalog_none")).length);
list(own, {shards: true}).forEach((d) => assert(Array.isArray(d.shards), tojson(d)));
if (isRouter) {
    const told = list(own, {shards: true, balancingConfiguration: true})[1];
    assert.eq([{k: 1}, 1, true], [told.shardKey, told.shards.length, told.balancingEnabled], tojson(told));
}
const fails = (code, pipeline, target = 1) =>
    assert.commandFailedWithCode(own.runCommand({aggregate: target, pipeline, cursor: {}}), code, tojson(pipeline));
fails(9621302, [{$listClusterCatalog: 1}]);
fails(ErrorCodes.TypeMismatch, [{$listClusterCatalog: {shards: 1}}]);
fails(40415, [{$listClusterCatalog: {more: true}}]);
fails(40602, [{$listClusterCatalog: {}}, {$listClusterCatalog: {}}]);
fails(9621301, [{$listClusterCatalog: {}}], "plain");

fails(31082, [{$search: {text: {query: "x", path: "y"}}}], "plain");
fails(31082, [{$vectorSearch: {}}], "plain");
fails(40602, [{$match: {}}, {$searchMeta: {}}], "plain");
assert.commandWorked(own.dropDatabase());
