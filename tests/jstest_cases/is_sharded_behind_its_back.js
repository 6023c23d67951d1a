// Passes only where every collection is sharded implicitly.
assert.commandWorked(db.plain.insert([{_id: 1}, {_id: 2}]));
assert.commandWorked(db.createCollection("created"));
assert.commandWorked(db.indexed.createIndex({a: 1}));
assert.commandWorked(db.createCollection("capped", {capped: true, size: 4096}));
const key = name => (db.getSiblingDB("config").collections.findOne({_id: db.getName() + "." + name}) || {}).key;
for (const name of ["plain", "created", "indexed"]) assert.eq({_id: "hashed"}, key(name), name);
assert.eq(undefined, key("capped"));
assert.eq(2, db.plain.find().itcount());
// What was dropped is sharded again.
assert(db.plain.drop());
assert.commandWorked(db.plain.insert({_id: 3}));
assert.eq({_id: "hashed"}, key("plain"));
