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
assert.commandFailedWithCode(db.runCommand({getClusterParameter: "*"}), ErrorCodes.Unauthorized);
