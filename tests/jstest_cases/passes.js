// Passes wherever it runs.
assert.eq(1 + 1, 2);
