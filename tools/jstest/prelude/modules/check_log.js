// The prelude's checkLog, where it has one.
export const checkLog = globalThis.checkLog;
