/**
 * Tools find collections through listCollections, with filters over what it shows.
 * Fails when a collection or view is missing or shown with another type, a filter is not applied, or nameOnly shows more.
 */
const mine = db.getSiblingDB("list_collections_test");
assert.commandWorked(mine.dropDatabase());
assert.commandWorked(mine.a.insert({_id: 1}));
assert.commandWorked(mine.b.insert({_id: 1}));
assert.commandWorked(mine.runCommand({create: "v", viewOn: "a", pipeline: [{$match: {x: 1}}]}));

function list(options) {
    const cursor = assert.commandWorked(mine.runCommand(Object.assign({listCollections: 1}, options))).cursor;
    assert.eq(0, cursor.id);
    assert.eq("list_collections_test.$cmd.listCollections", cursor.ns);
    return cursor.firstBatch;
}
function names(infos) {
    return infos.map(info => info.name).filter(name => name != "system.views").sort();
}
assert.eq(["a", "b", "v"], names(list({})));
assert.eq(["a"], names(list({filter: {name: "a"}})));
assert.eq(["v"], names(list({filter: {type: "view"}})));
assert.eq(["a", "b"], names(list({filter: {type: "collection", name: {$in: ["a", "b", "v"]}}})));
assert.eq(["b"], names(list({filter: {name: /^b/}})));
assert.eq([], list({filter: {name: "none"}}));

const view = list({filter: {name: "v"}})[0];
assert.eq({viewOn: "a", pipeline: [{$match: {x: 1}}]}, view.options);
assert.eq({readOnly: true}, view.info);
assert(!view.hasOwnProperty("idIndex"));
for (const info of list({nameOnly: true})) {
    assert.eq(["name", "type"], Object.keys(info));
}

const paged = assert.commandWorked(mine.runCommand({listCollections: 1, cursor: {batchSize: 1}})).cursor;
assert.eq(1, paged.firstBatch.length);
const rest = assert.commandWorked(mine.runCommand({getMore: paged.id, collection: "$cmd.listCollections"})).cursor;
assert.eq(["a", "b", "v"], names(paged.firstBatch.concat(rest.nextBatch)));

assert.eq(["a", "b", "v"], mine.getCollectionNames().filter(name => name != "system.views").sort());
assert.commandFailedWithCode(mine.runCommand({listCollections: 1, filter: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(mine.runCommand({listCollections: 1, filter: {name: {$bad: 1}}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(mine.runCommand({listCollections: 1, unheardOf: 1}), 40415);
assert.commandWorked(mine.dropDatabase());
assert.eq([], list({}));
