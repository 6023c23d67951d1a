// Control: output, time, chance, files of the test itself.
import {greeting} from "jstests/libs/greeting.js";

Natives.watch("print", "load", "sleep", "gc", "version", "buildInfo", "getBuildInfo", "getJSHeapLimitMB", "_rand", "_srand", "interpreterVersion",
              "isInteractive", "getMemInfo", "_isWindows", "_getEnv", "getFCVConstants", "hostname", "getHostName", "passwordPrompt", "_setShellFailPoint",
              "_runWithoutInterrupt");
assert.eq("imported from the root", greeting);
assert.eq("loaded from the root", (load("jstests/libs/loaded.js"), globalThis.wordOfLoadedFile));
assert.throws(() => load("jstests/libs/nowhere.js"));
print("said", 1, {a: 1});
const before = Date.now();
sleep(20);
assert(Date.now() - before >= 19);
gc();
assert(/^\d+\.\d+\.\d+/.test(version()), version());
assert.eq(version(), buildInfo().version);
assert.eq(version(), getBuildInfo().version);
assert.eq("number", typeof getJSHeapLimitMB());
_srand(7);
const sequence = [_rand(), _rand()];
_srand(7);
assert.eq(sequence, [_rand(), _rand()]);
assert(sequence.every((n) => n >= 0 && n < 1), tojson(sequence));
assert(typeof interpreterVersion() === "string");
assert.eq(false, isInteractive());
assert(getMemInfo().virtual > 0 && getMemInfo().resident > 0, tojson(getMemInfo()));
assert.eq(false, _isWindows());
assert.eq("", _getEnv("A_NAME_NOBODY_SETS"));
assert(_getEnv("PATH").length > 0);
assert(typeof getFCVConstants().latest === "string", tojson(getFCVConstants()));
assert.eq({count: 0, ok: 1}, _setShellFailPoint({configureFailPoint: "dummy", mode: {times: 2}, data: {a: 1}}));
assert.eq("noSuchPointOfTheShell not found", assert.throws(() => _setShellFailPoint({configureFailPoint: "noSuchPointOfTheShell", mode: "off"})).message);
assert.eq(3, _runWithoutInterrupt(() => 3));
assert.eq(hostname(), getHostName());
// A test has nobody to ask.
assert.eq("string", typeof passwordPrompt());
assert(performance.now() >= 0);
Natives.done();
