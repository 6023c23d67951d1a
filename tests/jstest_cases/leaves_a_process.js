// The process leaves the test's session; only the environment tells whose it is.
assert.eq(0, runNonMongoProgram("sh", "-c", "setsid sleep 300 >/dev/null 2>&1 &"));
