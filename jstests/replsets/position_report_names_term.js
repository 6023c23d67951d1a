/**
 * A report of positions from a member in a later term ends the reign of whom it reaches: that member may have voted for
 * another leader since, and what it holds of this one's entries commits nothing.
 * It fails if a primary counts positions without looking at the term of who reports them.
 *
 * @tags: [requires_own_servers]
 */
const rst = new ReplSetTest({nodes: 1});
rst.startSet();
rst.initiate();
const admin = rst.getPrimary().getDB("admin");
const term = () => Number(assert.commandWorked(admin.runCommand({replSetGetStatus: 1})).term);
const report = (of) => admin.runCommand({replSetUpdatePosition: 1, optimes: [], $replData: {term: NumberLong(of)}});

const before = term();
assert.commandWorked(report(before));
assert.commandWorked(report(before - 1));
assert.eq(before, term(), "a report of no later term changed something");

assert.commandWorked(report(before + 5));
assert.gte(term(), before + 5);
// It is alone, and leads again in a term of its own.
assert.soon(() => admin.runCommand({hello: 1}).isWritablePrimary, "nobody leads again", 30 * 1000);
assert.gt(term(), before + 5);
rst.stopSet();
