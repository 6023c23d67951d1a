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

// The copy's name is longer than the collection's.
const room = 255 - "convert_to_capped_names.".length - 25;
for (const [length, code] of [[room, 0], [room + 1, 73]]) {
    const name = "x".repeat(length);
    assert.commandWorked(own[name].insert({_id: 1}));
    const reply = own.runCommand({convertToCapped: name, size: 4096});
    code ? assert.commandFailedWithCode(reply, code) : assert.commandWorked(reply);
}
assert.commandWorked(own.dropDatabase());
