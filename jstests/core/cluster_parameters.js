/**
 * Cluster parameters hold for all nodes and outlive a restart.
 * Fails when a changed one keeps its value, its clock stands still, or an unknown one is taken.
 *
 * @tags: [requires_replication]
 */
function get(name) {
    return assert.commandWorked(db.adminCommand({getClusterParameter: name})).clusterParameters;
}
function expiry() {
    return get("changeStreamOptions")[0].preAndPostImages.expireAfterSeconds;
}
assert.eq(["changeStreamOptions"], get("changeStreamOptions").map(parameter => parameter._id));
assert.lt(1, get("*").length);
assert.eq(["changeStreamOptions"], get(["changeStreamOptions"]).map(parameter => parameter._id));

assert.commandWorked(db.adminCommand({setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: 100}}}}));
try {
    assert.eq(100, expiry());
    const first = get("changeStreamOptions")[0].clusterParameterTime;
    assert.commandWorked(db.adminCommand({setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: 200}}}}));
    assert.eq(200, expiry());
    assert.lt(timestampCmp(first, get("changeStreamOptions")[0].clusterParameterTime), 0);
} finally {
    assert.commandWorked(db.adminCommand({setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: "off"}}}}));
}
assert.eq("off", expiry());

assert.commandFailed(db.adminCommand({getClusterParameter: "noSuchParameter"}));
assert.commandFailed(db.adminCommand({setClusterParameter: {noSuchParameter: {x: 1}}}));
assert.commandFailed(db.adminCommand({setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: -5}}}}));
assert.commandFailedWithCode(db.adminCommand({setClusterParameter: 1}), ErrorCodes.TypeMismatch);

// Nothing of changeStreamOptions may be missing, and whatever is wrong with it is a BadValue; others have the codes of their fields.
const options = (value) => ({changeStreamOptions: value});
for (const [code, value] of [
    [ErrorCodes.BadValue, options("off")],
    [ErrorCodes.BadValue, options({})],
    [ErrorCodes.BadValue, options({preAndPostImages: null})],
    [ErrorCodes.BadValue, options({preAndPostImages: 1})],
    [ErrorCodes.BadValue, options({preAndPostImages: {expireAfterSeconds: "on"}})],
    [ErrorCodes.BadValue, options({preAndPostImages: {expireAfterSeconds: 5}, more: 1})],
    [ErrorCodes.DollarPrefixedFieldName, options({$set: 1})],
    [ErrorCodes.NoSuchKey, {}],
    [40414, null],
    [ErrorCodes.InvalidOptions, {changeStreamOptions: {}, changeStreams: {}}],
    [ErrorCodes.BadValue, {changeStreams: {expireAfterSeconds: 0}}],
    [ErrorCodes.TypeMismatch, {changeStreams: {expireAfterSeconds: "1"}}],
    [ErrorCodes.TypeMismatch, {pauseMigrationsDuringMultiUpdates: {enabled: 1}}],
]) {
    assert.commandFailedWithCode(db.adminCommand({setClusterParameter: value}), code, tojson(value));
}
// A null is the default, and seconds are kept as longs.
assert.commandWorked(db.adminCommand({setClusterParameter: {changeStreams: {expireAfterSeconds: NumberDecimal("50")}}}));
assert.eq(NumberLong(50), get("changeStreams")[0].expireAfterSeconds);
assert.commandWorked(db.adminCommand({setClusterParameter: {changeStreams: {expireAfterSeconds: null}}}));
assert.eq(NumberLong(3600), get("changeStreams")[0].expireAfterSeconds);
assert.commandFailedWithCode(db.runCommand({getClusterParameter: "*"}), ErrorCodes.Unauthorized);
