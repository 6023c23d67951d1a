/**
 * A cluster has default concerns for those that name none.
 * Fails when a default is not kept, not reported, or an unfit one is taken.
 *
 * @tags: [requires_replication]
 */
function get() {
    return assert.commandWorked(db.adminCommand({getDefaultRWConcern: 1}));
}
function set(options) {
    return db.adminCommand(Object.assign({setDefaultRWConcern: 1}, options));
}
const before = get();
assert.eq("local", before.defaultReadConcern.level);
assert.eq("majority", before.defaultWriteConcern.w);
assert.eq("implicit", before.defaultReadConcernSource);

try {
    assert.commandWorked(set({defaultReadConcern: {level: "majority"}}));
    assert.eq("majority", get().defaultReadConcern.level);
    assert.eq("global", get().defaultReadConcernSource);
    assert.commandWorked(set({defaultWriteConcern: {w: 1}}));
    assert.eq({w: 1, wtimeout: 0}, (concern => ({w: concern.w, wtimeout: concern.wtimeout}))(get().defaultWriteConcern));
    assert.eq("global", get().defaultWriteConcernSource);
    assert.eq("majority", get().defaultReadConcern.level);
} finally {
    assert.commandWorked(set({defaultReadConcern: {level: "local"}, defaultWriteConcern: {w: "majority"}}));
}

assert.commandFailedWithCode(set({}), ErrorCodes.BadValue);
assert.commandFailedWithCode(db.adminCommand({getDefaultRWConcern: 1, inMemory: 1}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(db.adminCommand({getDefaultRWConcern: 1, writeConcern: {w: 1}}), ErrorCodes.InvalidOptions);
assert.commandFailedWithCode(set({defaultReadConcern: {level: "linearizable"}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(set({defaultReadConcern: {level: "snapshot"}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(set({defaultReadConcern: {level: "nope"}}), [ErrorCodes.BadValue, ErrorCodes.FailedToParse]);
assert.commandFailedWithCode(set({defaultReadConcern: {level: 1}}), ErrorCodes.TypeMismatch);
assert.commandFailedWithCode(set({defaultReadConcern: {level: "local", more: 1}}), 40415);
assert.commandFailedWithCode(set({defaultWriteConcern: {w: 0}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(set({defaultWriteConcern: {wtimeout: 100}}), ErrorCodes.BadValue);
assert.commandFailedWithCode(set({defaultWriteConcern: {w: "noSuchMode"}}), ErrorCodes.UnknownReplWriteConcern);
assert.commandFailedWithCode(set({defaultWriteConcern: {w: null}}), ErrorCodes.UnknownReplWriteConcern);
assert.commandFailedWithCode(db.adminCommand({getDefaultRWConcern: 1, readConcern: {afterClusterTime: Timestamp(0, 0)}}), ErrorCodes.InvalidOptions);
// A default write concern that was set cannot be taken back.
assert.commandFailedWithCode(set({defaultWriteConcern: {}}), ErrorCodes.IllegalOperation);
assert.commandFailedWithCode(db.runCommand({getDefaultRWConcern: 1}), ErrorCodes.Unauthorized);
