/**
 * `top` tells of the collections that are there, and of each only what was done to it since it was made.
 * Fails when it goes on telling of collections that were dropped.
 *
 * @tags: [
 *   # A router has no `top`.
 *   assumes_against_mongod_not_mongos,
 * ]
 */
const other = db.getSiblingDB("top_forgets");
assert.commandWorked(other.dropDatabase());
const own = () => {
    const totals = assert.commandWorked(db.adminCommand({top: 1})).totals;
    return Object.keys(totals).filter(ns => ns.startsWith("top_forgets."));
};
const names = [...Array(50).keys()].map(i => "c" + i);
names.forEach(name => assert.commandWorked(other[name].insert({_id: 1})));
assert.sameMembers(names.map(name => "top_forgets." + name), own());
names.slice(10).forEach(name => assert(other[name].drop()));
assert.sameMembers(names.slice(0, 10).map(name => "top_forgets." + name), own());
assert.commandWorked(other.dropDatabase());
assert.eq([], own());
