/**
 * validate checks a collection and its indexes against each other.
 * Fails when a sound collection is reported as invalid, the counts are wrong, or a missing one is validated.
 */
const coll = db.validate_collection;
coll.drop();
assert.commandWorked(coll.insert([...Array(30).keys()].map(i => ({_id: i, a: i % 3, l: [i, i + 1]}))));
assert.commandWorked(coll.createIndex({a: 1}));
assert.commandWorked(coll.createIndex({l: 1}));
assert.commandWorked(coll.createIndex({s: 1}, {sparse: true}));
assert.commandWorked(coll.remove({_id: {$gte: 20}}));
assert.commandWorked(coll.update({}, {$set: {a: 7}}, {multi: true}));

/** One reply of a node; a router answers with one for each shard. */
function replies(options) {
    const reply = assert.commandWorked(db.runCommand(Object.assign({validate: coll.getName()}, options)));
    assert.eq(true, reply.valid, () => tojson(reply));
    return reply.raw === undefined ? [reply] : Object.values(reply.raw);
}
for (const options of [{}, {full: true}]) {
    const all = replies(options);
    const sum = field => all.reduce((total, reply) => total + field(reply), 0);
    assert.eq(20, sum(reply => reply.nrecords), () => tojson(all));
    assert.eq(20, sum(reply => reply.keysPerIndex._id_));
    assert.eq(20, sum(reply => reply.keysPerIndex.a_1));
    assert.eq(40, sum(reply => reply.keysPerIndex.l_1));
    assert.eq(0, sum(reply => reply.keysPerIndex.s_1));
    assert.eq(0, sum(reply => reply.nInvalidDocuments));
    for (const reply of all) {
        assert.eq([], reply.errors);
        assert(Object.values(reply.indexDetails).every(index => index.valid));
    }
}
assert.eq(true, coll.validate().valid);

assert.commandFailedWithCode(db.runCommand({validate: "validate_collection_none"}), ErrorCodes.NamespaceNotFound);
assert.commandFailedWithCode(db.runCommand({validate: coll.getName(), full: true, background: true}), [ErrorCodes.InvalidOptions, ErrorCodes.CommandNotSupported]);

// What was there before the validator may not comply with it: that is counted, and no fault of the collection.
assert.commandWorked(db.runCommand({collMod: coll.getName(), validator: {a: 8}, validationAction: "warn"}));
assert.commandWorked(coll.insert({_id: 100, a: 8}));
const counted = () => replies({}).reduce((total, reply) => total + reply.nNonCompliantDocuments, 0);
assert.eq(20, counted());
assert(replies({}).some(reply => reply.warnings.some(text => /not compliant/.test(text))));
assert.commandWorked(db.runCommand({collMod: coll.getName(), validationLevel: "off"}));
assert.eq(0, counted());
