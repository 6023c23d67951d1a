// What retryable writes depend on.
const kRetryable = new Set([
    "delete", "findAndModify", "findandmodify", "insert", "update", "bulkWrite", "testInternalTransactions",
]);
export const RetryableWritesUtil = {
    isRetryableWriteCmdName: (name) => kRetryable.has(name),
    isRetryableCode: (code) => ErrorCodes.isRetriableError(code) || ErrorCodes.isNetworkError(code),
    storageEngineSupportsRetryableWrites: () => true,
    // The session records of one session are the same on every member.
    checkTransactionTable(primary, secondary, lsid) {
        const find = (node) => node.getDB("config").transactions.findOne({ "_id.id": lsid.id });
        assert.eq(find(primary), find(secondary));
    },
    assertSameRecordOnBothConnections(primary, secondary, lsid) {
        RetryableWritesUtil.checkTransactionTable(primary, secondary, lsid);
    },
    runRetryableWrite(conn, command, code = ErrorCodes.NotWritablePrimary) {
        let reply;
        assert.soon(() => {
            reply = conn.runCommand ? conn.runCommand(command) : conn.adminCommand(command);
            return reply.ok || reply.code !== code;
        });
        return assert.commandWorked(reply);
    },
};
