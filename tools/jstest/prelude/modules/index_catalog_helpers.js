// Finding one index among those of a collection.
const same = (a, b) => bsonWoCompare(a, b) === 0;

export const IndexCatalogHelpers = {
    findByName: (specs, name) => specs.find((spec) => spec.name === name) ?? null,
    // By key, and when one is given by collation as well.
    findByKeyPattern(specs, key, collation) {
        return specs.find((spec) => same(spec.key, key) && (collation === undefined || same(spec.collation || {}, collation))) ?? null;
    },
    getAllByKeyPattern: (specs, key) => specs.filter((spec) => same(spec.key, key)),
    createIndexAndVerifyWithDrop(coll, key, options) {
        coll.dropIndexes();
        assert.commandWorked(coll.createIndex(key, options));
        assert.neq(null, IndexCatalogHelpers.findByName(coll.getIndexes(), options.name), `no index ${tojson(key)}`);
    },
};
export const GetIndexHelpers = IndexCatalogHelpers;
