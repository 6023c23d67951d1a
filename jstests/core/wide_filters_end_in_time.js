/**
 * A filter of very many fields of a document of very many ends with its time limit, too.
 * Fails if the fields that are passed over on the way to one are not counted as work: it looked at no limit for ten seconds.
 */
const coll = db.wide_filters_end_in_time;
coll.drop();
const fields = {_id: 1};
for (let i = 0; i < 30000; i++) {
    fields[`f${i}`] = i;
}
assert.commandWorked(coll.insert(fields));
assert.eq(1, coll.find({f29999: 29999, f15000: 15000}).itcount());

const begun = Date.now();
const reply = db.runCommand({find: coll.getName(), filter: fields, maxTimeMS: 300});
assert(reply.ok || reply.code === ErrorCodes.MaxTimeMSExpired, tojson(reply).substring(0, 500));
assert.lt(Date.now() - begun, 15000);
coll.drop();
