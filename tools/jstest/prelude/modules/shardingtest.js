// The prelude's ShardingTest, for tests that import it.
export const ShardingTest = globalThis.ShardingTest;
