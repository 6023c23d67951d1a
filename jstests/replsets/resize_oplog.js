/**
 * The oplog's size is changed while the server runs, and stays changed after a restart.
 * It fails if the size shown is not the one that was set, if a restart forgets it, or if sizes that make no sense are taken.
 *
 * @tags: [requires_own_servers, requires_persistence]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const resize = (more) => rst.getPrimary().adminCommand(Object.assign({replSetResizeOplog: 1}, more));
const shown = () => assert.commandWorked(rst.getPrimary().getDB("local").runCommand({collStats: "oplog.rs"})).maxSize;

assert.commandWorked(resize({size: 1000}));
assert.eq(1000 * 1024 * 1024, shown());
assert.commandWorked(resize({size: 990.5, minRetentionHours: 0}));
assert.eq(990.5 * 1024 * 1024, shown());
for (const [bad, code] of [[{size: 989}, 2], [{size: 2e9}, 2], [{size: NaN}, 2], [{size: "large"}, 14],
    [{minRetentionHours: -1}, 2], [{minRetentionHours: NaN}, 2], [{other: 1}, 40415]]) {
    assert.commandFailedWithCode(resize(bad), code, tojson(bad));
}
assert.eq(990.5 * 1024 * 1024, shown());
const hours = () => rst.getPrimary().adminCommand({serverStatus: 1}).oplogTruncation.oplogMinRetentionHours;
assert.eq(0, hours());
assert.commandWorked(resize({minRetentionHours: 1.5}));
assert.eq(1.5, hours());
rst.restart(0);
rst.getPrimary();
assert.eq(990.5 * 1024 * 1024, shown());
assert.eq(1.5, hours());
rst.stopSet();
