// Files and hashes.
Natives.watch("cat", "writeFile", "appendFile", "copyFile", "copyDir", "removeFile", "mkdir", "listFiles", "ls", "cd", "pwd", "fileExists", "pathExists",
              "getFileMode", "umask", "fuzzFile", "md5sumFile", "hex_md5", "computeSHA256Block", "computeSHA256Hmac", "_copyFileRange", "resetDbpath", "copyDbpath",
              "_getObjInDumpFile", "_numObjsInDumpFile", "_readDumpFile", "_fnvHashToHexString", "getStringWidth", "_openGoldenData",
              "_writeGoldenData", "_closeGoldenData", "_readTestPipes", "_writeTestPipe", "_writeTestPipeBsonFile", "_writeTestPipeBsonFileSync", "_writeTestPipeObjects");
const base = (_getEnv("JSTEST_DATA") || "/tmp") + "/natives_files_" + Date.now();
resetDbpath(base);
mkdir(base + "/a");
writeFile(base + "/a/x.txt", "one\n");
appendFile(base + "/a/x.txt", "two\n");
assert.eq("one\ntwo\n", cat(base + "/a/x.txt"));
assert.throws(() => cat(base + "/nowhere"));
assert(fileExists(base + "/a/x.txt") && pathExists(base + "/a") && !fileExists(base + "/b"));
copyFile(base + "/a/x.txt", base + "/a/y.txt");
copyDir(base + "/a", base + "/b");
assert.eq("one\ntwo\n", cat(base + "/b/y.txt"));
assert.eq([base + "/b/x.txt", base + "/b/y.txt"], listFiles(base + "/b").map((entry) => entry.name).sort());
assert.eq([false, 8], listFiles(base + "/b").map((entry) => [entry.isDirectory, Number(entry.size)])[0]);
assert.eq(2, ls(base + "/b").length);
assert.eq(true, removeFile(base + "/b/y.txt"));
assert(!fileExists(base + "/b/y.txt"));
const home = pwd();
cd(base);
assert.eq("one\ntwo\n", cat("b/x.txt"));
cd(home);
const mask = umask(0o077);
writeFile(base + "/private", "x");
umask(mask);
assert.eq(0o600, getFileMode(base + "/private") & 0o777);
copyDbpath(base + "/a", base + "/c");
assert(fileExists(base + "/c/x.txt"));
resetDbpath(base + "/c");
assert.eq([], ls(base + "/c"));

writeFile(base + "/abc", "abc");
assert.eq("900150983cd24fb0d6963f7d28e17f72", md5sumFile(base + "/abc"));
fuzzFile(base + "/abc");
assert("900150983cd24fb0d6963f7d28e17f72" !== md5sumFile(base + "/abc"));
fuzzFile(base + "/abc");
assert.eq("900150983cd24fb0d6963f7d28e17f72", hex_md5("abc"));
assert.eq("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", computeSHA256Block("abc").base64());
const hmac = computeSHA256Hmac(BinData(0, "a2V5"), "The quick brown fox jumps over the lazy dog");
assert.eq("f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8", hmac.hex().toLowerCase());
assert.eq(16, _fnvHashToHexString("abc").length);
assert.eq(3, getStringWidth("abc"));
_copyFileRange(base + "/abc", base + "/range", NumberLong(0), NumberLong(2));
assert.eq("ab", cat(base + "/range"));

// A dump is documents one after the other: {a: 1} twice, as int32.
const one = "\u000c\u0000\u0000\u0000\u0010a\u0000\u0001\u0000\u0000\u0000\u0000";
writeFile(base + "/dump.bson", one + one, true);
assert.eq(2, Number(_numObjsInDumpFile(base + "/dump.bson")));
assert.eq({a: 1}, _getObjInDumpFile(base + "/dump.bson", 1));
assert.eq([{a: 1}, {a: 1}], _readDumpFile(base + "/dump.bson"));

// What is written is compared with a file under the root.
const golden = (text) => {
    _openGoldenData("greeting", {relativePath: "jstests/expected"});
    _writeGoldenData(text);
    _closeGoldenData();
};
golden("good day\n");
assert(/line 1 is "good night"/.test(assert.throws(() => golden("good night\n")).message));
assert.throws(() => _closeGoldenData());

// Pipes are written by threads of this process, and read here or by a program.
const pipe = (name) => "natives_" + Date.now() + "_" + name;
const [objects, random, dumped] = ["objects", "random", "dumped"].map(pipe);
_writeTestPipeObjects(objects, 3, [{a: 1}, {}]);
_writeTestPipe(random, 10, 5, 5);
_writeTestPipeBsonFile(dumped, 2, base + "/dump.bson");
assert.eq({objects: 15, bytes: 16 + 5 + 16 + 10 * Object.bsonsize({string: "12345"}) + 2 * 12}, _readTestPipes(objects, random, dumped));
const reader = _startMongoProgram({args: ["sh", "-c", "until test -p " + base + "/sync; do sleep 0.01; done; wc -c < " + base + "/sync > " + base + "/length"]});
_writeTestPipeBsonFileSync("sync", 4, base + "/dump.bson", base);
assert.eq(0, Number(waitProgram(reader)));
assert.eq(48, Number(cat(base + "/length")));
Natives.done();
