// The prelude's ReplSetTest, for tests that import it.
export const ReplSetTest = globalThis.ReplSetTest;
