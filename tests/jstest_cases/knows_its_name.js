assert.eq("knows_its_name", TestData.testName);
assert.eq(42, TestData.answer);
assert.eq("evaluated", saidByTheSuite);
