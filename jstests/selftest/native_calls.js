/**
 * Under a library that is not ours, the natives of the real shell are all there: the tests of a small library of our own, laid out
 * like a foreign one, call each of them. It fails if a native is missing, leans on our prelude, or answers otherwise.
 *
 * @tags: [requires_own_servers]
 */
// A module knows where it is.
export {};
const repository = import.meta.url.replace("file://", "").replace(/\/jstests\/selftest\/.*/, "");
const library = repository + "/tests/jstest_lib";
const tests = listFiles(library + "/jstests/natives").map((entry) => entry.name).sort();
assert.gte(tests.length, 7, tojson(tests));

for (const test of tests) {
    clearRawMongoProgramOutput();
    const status = runMongoProgram("mongo", "--nodb", "--shell-lib", library + "/src/mongo/shell", "--root", library, test);
    const output = rawMongoProgramOutput(".*");
    assert.eq(0, status, test + "\n" + output);
    assert(/called \d+ natives/.test(output), test);
}

// A library that is broken says where, and a root that lacks a file says which.
const broken = MongoRunner.dataPath + "broken_library";
resetDbpath(broken);
writeFile(broken + "/one.js", "var first = second + 1;");
assert.neq(0, runMongoProgram("mongo", "--nodb", "--shell-lib", broken, "--eval", "quit(0)"));
writeFile(broken + "/two.js", "var second = 1;");
assert.eq(2, runMongoProgram("mongo", "--nodb", "--shell-lib", broken, "--eval", "quit(first)"), "files are tried again once others have defined their names");
