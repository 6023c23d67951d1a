/**
 * Results too large for one reply come in batches whose sizes the client chooses.
 * Fails when a batch holds another number of documents than asked for, the cursor stays open after the last one, or documents repeat.
 */
const coll = db.cursor_batches;
coll.drop();
assert.commandWorked(coll.insert([...Array(250).keys()].map(i => ({_id: i}))));
const name = coll.getName();

function open(options) {
    return assert.commandWorked(db.runCommand(Object.assign({find: name, sort: {_id: 1}}, options))).cursor;
}
function more(cursor, options) {
    return assert.commandWorked(db.runCommand(Object.assign({getMore: cursor.id, collection: name}, options || {}))).cursor;
}

// One hundred and one documents are the first batch unless the client says otherwise; the next holds all the rest.
const byDefault = open({});
assert.eq(101, byDefault.firstBatch.length);
assert.eq(db.getName() + "." + name, byDefault.ns);
assert.neq(0, byDefault.id);
const rest = more(byDefault);
assert.eq(149, rest.nextBatch.length);
assert.eq(101, rest.nextBatch[0]._id);
assert.eq(0, rest.id);

// An empty first batch only opens the cursor.
const empty = open({batchSize: 0});
assert.eq([], empty.firstBatch);
assert.neq(0, empty.id);
const three = more(empty, {batchSize: 3});
assert.eq([0, 1, 2], three.nextBatch.map(doc => doc._id));
assert.eq(247, more(three).nextBatch.length);
// One node does not even look whether there is a document.
if (db.hello().msg !== "isdbgrid") {
    const none = db.getName() + "_none";
    assert.commandWorked(db.createCollection(none));
    for (const command of [{find: none, batchSize: 0}, {aggregate: none, pipeline: [], cursor: {batchSize: 0}}]) {
        const cursor = assert.commandWorked(db.runCommand(command)).cursor;
        assert.neq(0, cursor.id, () => tojson(command));
        const ended = assert.commandWorked(db.runCommand({getMore: cursor.id, collection: none})).cursor;
        assert.eq([[], 0], [ended.nextBatch, Number(ended.id)]);
    }
}

// A limit ends the cursor, in whichever batch it is met.
const limited = open({batchSize: 2, limit: 5});
assert.eq(2, limited.firstBatch.length);
const second = more(limited, {batchSize: 2});
assert.eq(2, second.nextBatch.length);
const last = more(second, {batchSize: 2});
assert.eq([4], last.nextBatch.map(doc => doc._id));
assert.eq(0, last.id);
assert.eq(0, open({limit: 5, batchSize: 5}).id);
assert.eq(0, open({singleBatch: true, batchSize: 3}).id);
assert.eq(3, open({singleBatch: true, batchSize: 3}).firstBatch.length);

// The shell walks all of them.
assert.eq(250, coll.find().batchSize(7).itcount());
assert.eq(40, coll.find().batchSize(7).limit(40).itcount());
assert.eq(10, coll.find().skip(240).batchSize(7).itcount());
