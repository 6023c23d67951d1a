// The prelude's fail points, for tests that import them.
export const FailPoint = globalThis.FailPoint;
export const configureFailPoint = globalThis.configureFailPoint;
export const configureFailPointWithRetries = globalThis.configureFailPointWithRetries;
export const configureFailPointForRS = globalThis.configureFailPointForRS;
export const kDefaultWaitForFailPointTimeout = globalThis.kDefaultWaitForFailPointTimeout;
