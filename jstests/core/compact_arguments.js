/**
 * Compaction frees nothing here, but what it is asked must be what the command knows.
 * Fails when a number is taken for a flag, or a target below one mebibyte is accepted.
 *
 * @tags: [
 *   # Routers have nothing to compact.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const coll = db.compact_arguments;
coll.drop();
assert.commandWorked(coll.insert({_id: 1}));

function compact(options) {
    return db.runCommand(Object.assign({compact: coll.getName()}, options));
}
assert.commandWorked(compact({force: true, freeSpaceTargetMB: 1}));
for (const flag of [1, NumberLong(1), 1.5, NumberDecimal("1"), "yes"]) {
    assert.commandFailedWithCode(compact({force: flag}), ErrorCodes.TypeMismatch, () => tojson(flag));
    assert.commandFailedWithCode(compact({dryRun: flag}), ErrorCodes.TypeMismatch, () => tojson(flag));
}
for (const size of [0, -1, 0.5, NumberLong("-9223372036854775808"), NumberDecimal("-0")]) {
    assert.commandFailedWithCode(compact({freeSpaceTargetMB: size, force: true}), ErrorCodes.BadValue, () => tojson(size));
}
