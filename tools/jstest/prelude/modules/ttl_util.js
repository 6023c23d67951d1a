// Waits for the deletion of expired documents.
export const TTLUtil = {
    // Until a whole pass has begun and ended after this call.
    waitForPass(db, waitForMajority = false, timeout = 60 * 1000) {
        const passes = () => Number(assert.commandWorked(db.serverStatus()).metrics.ttl.passes);
        const wanted = passes() + 2;
        assert.soon(() => passes() >= wanted, "no pass over expired documents", timeout, 50);
        if (waitForMajority) assert.commandWorked(db.adminCommand({ appendOplogNote: 1, data: { ttl: 1 }, writeConcern: { w: "majority" } }));
    },
};
