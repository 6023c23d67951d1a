/**
 * What the server keeps for itself stays as it is: definitions of views and buckets of time series in a capped collection would be lost
 * once it is full. It fails if convertToCapped takes any name that a collection has.
 *
 * @tags: [assumes_unsharded_collection]
 */
const own = db.getSiblingDB("convert_to_capped_names");
assert.commandWorked(own.c.insert({_id: 1}));
assert.commandWorked(own.createView("v", "c", []));
assert.commandWorked(own.createCollection("ts", {timeseries: {timeField: "t"}}));

assert.commandFailedWithCode(own.runCommand({convertToCapped: "system.views", size: 4096}), 2);
assert.commandFailedWithCode(own.runCommand({convertToCapped: "system.buckets.ts", size: 4096}), 20);
assert.eq([{_id: 1}], own.v.find().toArray());

// Neither are they cloned, nor is a view or what looks like buckets made to be a clone. A name that no collection can have is that of none.
if (db.hello().msg !== "isdbgrid") {
    assert.commandFailedWithCode(own.runCommand({convertToCapped: "$c", size: 4096}), 26);
    const clone = (from, to) => own.runCommand({cloneCollectionAsCapped: from, toCollection: to, size: 4096});
    assert.commandFailedWithCode(clone("system.buckets.ts", "copy"), 20);
    assert.commandFailedWithCode(clone("c", "system.buckets.none"), 20);
    assert.commandFailedWithCode(clone("c", "v"), 166);
    assert.commandFailedWithCode(clone("x".repeat(255), "copy"), 26);
    assert.commandWorked(clone("c", "copy"));
}

// The copy's name is longer than the collection's.
const room = 255 - "convert_to_capped_names.".length - 25;
for (const [length, code] of [[room, 0], [room + 1, 73]]) {
    const name = "x".repeat(length);
    assert.commandWorked(own[name].insert({_id: 1}));
    const reply = own.runCommand({convertToCapped: name, size: 4096});
    code ? assert.commandFailedWithCode(reply, code) : assert.commandWorked(reply);
}
assert.commandWorked(own.dropDatabase());
