// Running a transaction again when it failed for a moment only.
export const TransactionsUtil = {
    isTransientTransactionError: (reply) => Boolean(reply && reply.errorLabels && reply.errorLabels.includes("TransientTransactionError")),
    commandSupportsTxn: (db, name) => ["aggregate", "bulkWrite", "delete", "find", "findAndModify", "findandmodify", "getMore", "insert", "update", "distinct"].includes(name),
};
