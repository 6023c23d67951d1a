/**
 * collMod changes the options of a collection and its indexes in place, and says what they were.
 * Fails when a change is not made or not reported, or an unknown index or option is taken.
 */
const coll = db.coll_mod;
coll.drop();
assert.commandWorked(coll.insert({_id: 1, t: new Date()}));
assert.commandWorked(coll.createIndex({t: 1}, {expireAfterSeconds: 1000000}));
assert.commandWorked(coll.createIndex({a: 1}));
const name = coll.getName();

function index(indexName) {
    return coll.getIndexes().filter(i => i.name == indexName)[0];
}
function collMod(options) {
    return db.runCommand(Object.assign({collMod: name}, options));
}

assert.commandWorked(collMod({index: {keyPattern: {t: 1}, expireAfterSeconds: 2000000}}));
assert.eq(2000000, index("t_1").expireAfterSeconds);
assert.commandWorked(collMod({index: {name: "a_1", expireAfterSeconds: 500000}}));
assert.eq(500000, index("a_1").expireAfterSeconds);

assert.commandWorked(collMod({index: {name: "a_1", hidden: true}}));
assert.eq(true, index("a_1").hidden);
assert.commandWorked(collMod({index: {keyPattern: {a: 1}, hidden: false}}));
assert(!index("a_1").hasOwnProperty("hidden"));
// A key pattern names the same index whatever types its numbers have.
assert.commandWorked(collMod({index: {keyPattern: {a: NumberLong(1)}, hidden: true}}));
assert.eq(true, index("a_1").hidden);
assert.commandWorked(collMod({index: {keyPattern: {a: NumberInt(1)}, hidden: false}}));
assert(!index("a_1").hasOwnProperty("hidden"));
assert.commandFailedWithCode(collMod({index: {keyPattern: {a: NumberLong(-1)}, hidden: true}}), ErrorCodes.IndexNotFound);

assert.commandWorked(collMod({validator: {a: {$exists: true}}, validationLevel: "moderate"}));
const options = db.getCollectionInfos({name: name})[0].options;
assert.eq({a: {$exists: true}}, options.validator);
assert.eq("moderate", options.validationLevel);
assert.commandWorked(collMod({validator: {}, validationLevel: "off"}));

assert.commandWorked(collMod({}));
assert.commandFailedWithCode(collMod({index: {name: "none", hidden: true}}), ErrorCodes.IndexNotFound);
assert.commandFailedWithCode(collMod({index: {keyPattern: {none: 1}, hidden: true}}), ErrorCodes.IndexNotFound);
assert.commandFailedWithCode(collMod({index: {name: "a_1"}}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(collMod({index: {hidden: true}}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(collMod({index: {name: "a_1", keyPattern: {a: 1}, hidden: true}}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(collMod({index: {name: "_id_", hidden: true}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(collMod({unheardOf: 1}), 40415);
assert.commandFailedWithCode(collMod({validationAction: "shrug"}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.runCommand({collMod: "coll_mod_none", validator: {}}), ErrorCodes.NamespaceNotFound);
