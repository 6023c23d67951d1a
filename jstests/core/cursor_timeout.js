/**
 * Cursors that nobody reads any more are closed after a while.
 * Fails when an idle cursor lives on, one in use or without a timeout is closed, or the count of those timed out stands still.
 * On a cluster that is the router's cursor, and the router's parameter.
 */
const coll = db.cursor_timeout;
coll.drop();
assert.commandWorked(coll.insert([...Array(50).keys()].map(i => ({_id: i}))));
const name = coll.getName();

function open(options) {
    return assert.commandWorked(db.runCommand(Object.assign({find: name, batchSize: 2}, options))).cursor.id;
}
function timedOut() {
    return Number(assert.commandWorked(db.adminCommand({serverStatus: 1})).metrics.cursor.timedOut);
}
const before = timedOut();
const was = assert.commandWorked(db.adminCommand({setParameter: 1, cursorTimeoutMillis: 1000})).was;
try {
    const idle = open();
    const forever = open({noCursorTimeout: true});
    const used = open();
    // Reading a cursor every now and then keeps it.
    for (let i = 0; i < 12; i++) {
        assert.commandWorked(db.runCommand({getMore: used, collection: name, batchSize: 1}));
        sleep(250);
    }
    assert.soon(() => timedOut() > before);
    assert.soon(() => {
        const {open, totalOpened} = db.adminCommand({serverStatus: 1}).metrics.cursor;
        return Number(open.noTimeout) >= 1 && Number(open.total) >= 2 && Number(totalOpened) >= 3;
    });
    assert.commandFailedWithCode(db.runCommand({getMore: idle, collection: name}), ErrorCodes.CursorNotFound);
    const last = assert.commandWorked(db.runCommand({getMore: forever, collection: name})).cursor;
    assert.eq([48, 0], [last.nextBatch.length, Number(last.id)]);
} finally {
    assert.commandWorked(db.adminCommand({setParameter: 1, cursorTimeoutMillis: was}));
}
