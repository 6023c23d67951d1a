/**
 * Stages that hold many documents are bounded in memory, and spill or fail by the client's choice.
 * Fails when a limit is not kept with allowDiskUse false, is kept where spilling is allowed, or a result document may grow past its limit.
 *
 * @tags: [
 *   # The parameter is set on the node that is asked.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.memory_limits;
coll.drop();
const padding = "x".repeat(10 * 1024);
assert.commandWorked(coll.insert([...Array(300).keys()].map(i => ({_id: i, k: i, s: (i * 7) % 300, padding: padding}))));
const name = coll.getName();

function withParameter(parameter, value, body) {
    const was = assert.commandWorked(db.adminCommand({setParameter: 1, [parameter]: value})).was;
    try {
        body();
    } finally {
        assert.commandWorked(db.adminCommand({setParameter: 1, [parameter]: was}));
    }
}
const sorting = {aggregate: name, pipeline: [{$sort: {s: 1}}, {$skip: 298}], cursor: {}};
withParameter("internalQueryMaxBlockingSortMemoryUsageBytes", 1024 * 1024, () => {
    assert.commandFailedWithCode(db.runCommand(Object.assign({}, sorting, {allowDiskUse: false})), ErrorCodes.QueryExceededMemoryLimitNoDiskUseAllowed);
    assert.commandFailedWithCode(db.runCommand({find: name, sort: {s: 1}, allowDiskUse: false}), ErrorCodes.QueryExceededMemoryLimitNoDiskUseAllowed);
    const reply = assert.commandWorked(db.runCommand(Object.assign({}, sorting, {allowDiskUse: true})));
    assert.eq([298, 299], reply.cursor.firstBatch.map(doc => doc.s));
    // Few documents need little memory, however many there are.
    assert.eq([0, 1, 2], coll.find({}, {s: 1}).sort({s: 1}).limit(3).allowDiskUse(false).toArray().map(doc => doc.s));
});

// The sort of a write has no say in it: the parameter decides.
withParameter("internalQueryMaxBlockingSortMemoryUsageBytes", 1024 * 1024, () => {
    const sorted = [
        {findAndModify: name, query: {k: {$gte: 0}}, sort: {s: -1}, update: {$set: {modified: 1}}},
        {update: name, updates: [{q: {k: {$gte: 0}}, u: {$set: {updated: 1}}, sort: {s: -1}}]},
    ];
    withParameter("allowDiskUseByDefault", false, () => {
        for (const command of sorted) {
            const reply = db.runCommand(command);
            const error = reply.writeErrors ? reply.writeErrors[0] : reply;
            assert.eq(ErrorCodes.QueryExceededMemoryLimitNoDiskUseAllowed, error.code, tojson(reply));
        }
    });
    sorted.forEach(command => assert.commandWorked(db.runCommand(command)));
    assert.eq([299], coll.find({modified: 1, updated: 1}).toArray().map(doc => doc.s));
});

// Without a limit in the way both ways agree.
for (const allowDiskUse of [true, false]) {
    assert.eq(300, coll.aggregate([{$group: {_id: "$k"}}], {allowDiskUse: allowDiskUse}).itcount());
}

// One document of a result may not exceed sixteen megabytes.
assert.commandFailedWithCode(
    db.runCommand({aggregate: name, pipeline: [{$unwind: {path: "$none", preserveNullAndEmptyArrays: true}}, {$group: {_id: null, all: {$push: {$concat: ["$padding", "$padding", "$padding", "$padding", "$padding", "$padding"]}}}}], cursor: {}}),
    [ErrorCodes.BSONObjectTooLarge, 10334, 17419, 17420, ErrorCodes.ExceededMemoryLimit]);
assert.commandFailedWithCode(db.runCommand({aggregate: name, pipeline: [], cursor: {}, allowDiskUse: "yes"}), ErrorCodes.TypeMismatch);
