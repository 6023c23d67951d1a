/**
 * A change of very many documents goes on in slices, and others read and write between them.
 * It fails if others see a multi-update only when it has ended, or if it misses documents or changes one twice because of them.
 */
const coll = db.update_multi_lets_others_in;
const stop = db.update_multi_lets_others_in_stop;
coll.drop();
stop.drop();
const N = 20000;
for (let i = 0; i < N; i += 5000) {
    assert.commandWorked(coll.insert([...Array(5000).keys()].map((j) => ({_id: i + j, n: 0}))));
}
const spread = () => coll.aggregate([{$group: {_id: null, min: {$min: "$n"}, max: {$max: "$n"}, count: {$sum: 1}}}]).toArray()[0];

const rounds = startParallelShell(() => {
    const coll = db.update_multi_lets_others_in;
    for (let round = 1; !db.update_multi_lets_others_in_stop.findOne(); round++) {
        assert.eq(20000, assert.commandWorked(coll.updateMany({_id: {$gte: 0}}, {$inc: {n: 1}})).modifiedCount);
    }
}, db.getMongo().port);
assert.soon(() => {
    const seen = spread();
    return seen.min < seen.max;
}, "no reader came in between");
assert.commandWorked(coll.insert({_id: -1, n: 0}));
assert.commandWorked(stop.insert({}));
rounds();
assert.commandWorked(coll.remove({_id: -1}));
const end = spread();
assert.eq(N, end.count);
assert.eq(end.min, end.max, "a round missed documents or changed some twice");
