// Calls again what failed with a transient transaction error.
const isTransient = (error) => Boolean(error && error.errorLabels && error.errorLabels.includes("TransientTransactionError"));

export function retryOnceOnTransientAndRestartTxnOnMongos(session, fn, options) {
    try {
        return fn();
    } catch (error) {
        if (!isTransient(error)) throw error;
        session.abortTransaction_forTesting();
        session.startTransaction(options);
        return fn();
    }
}
export const retryOnceOnTransientOnMongos = retryOnceOnTransientAndRestartTxnOnMongos;
export function withTxnAndAutoRetryOnMongos(session, fn, options, retry = true) {
    return withTxnAndAutoRetry(session, fn, { txnOptions: options, retry });
}
function withTxnAndAutoRetry(session, fn, { txnOptions, retry }) {
    for (let attempts = 0; ; attempts++) {
        try {
            session.startTransaction(txnOptions);
            const result = fn();
            assert.commandWorked(session.commitTransaction_forTesting());
            return result;
        } catch (error) {
            if (!retry || !isTransient(error) || attempts >= 10) throw error;
        }
    }
}
