//! What a script says to the shell and asks of it.

use crate::Options;
use crate::testing::{output_of, run, run_with};

#[test]
fn print_writes_one_line_of_all_its_arguments() {
    let (outcome, output) =
        output_of("print('a', 1, null, undefined, {toString() { return 'o'; }}); print();");
    outcome.unwrap();
    assert_eq!(output, "a 1 null undefined o\n\n");
}

#[test]
fn sleep_takes_milliseconds() {
    run("const t = Date.now(); sleep(NumberInt(30)); sleep(-1); if (Date.now() - t < 25) throw Error('too short');").unwrap();
}

#[test]
fn shells_that_start_together_draw_different_numbers() {
    let drawn: Vec<String> = std::thread::scope(|scope| {
        let shells: Vec<_> = (0..8).map(|_| scope.spawn(|| output_of("print(Math.random());").1)).collect();
        shells.into_iter().map(|shell| shell.join().unwrap()).collect()
    });
    let different: std::collections::HashSet<&String> = drawn.iter().collect();
    assert_eq!(different.len(), 8, "{drawn:?}");
    assert!(drawn.iter().all(|n| n.trim().parse::<f64>().is_ok_and(|n| (0.0..1.0).contains(&n))));
}

#[test]
fn one_seed_gives_one_sequence() {
    run(r#"
        const take = () => [_rand(), _rand(), _rand()];
        if (_srand(7) !== 7) throw Error("the seed is returned");
        const first = take();
        _srand(7);
        if (String(take()) !== String(first)) throw Error("not repeated");
        if (String(take()) === String(first)) throw Error("constant");
        if (!first.every(n => n >= 0 && n < 1)) throw Error("not in the unit interval");
        _srand();
        take();
    "#)
    .unwrap();
}

#[test]
fn the_shell_tells_what_it_is() {
    run(r#"
        const eq = (a, b) => { if (a !== b) throw Error(a + " is not " + b); };
        eq(buildInfo().version, version());
        eq(getBuildInfo().versionArray.slice(0, 3).join("."), version());
        eq(version().startsWith(getFCVConstants().latest + "."), true);
        eq(typeof getBuildInfo().buildEnvironment.ccflags, "string");
        eq(_isWindows(), false);
        eq(_getEnv("NO_SUCH_VARIABLE"), "");
        eq(_getEnv("PATH").length > 0, true);
        eq(getHostName(), hostname());
        eq(getMemInfo().resident > 0 && getMemInfo().virtual >= getMemInfo().resident, true);
        eq(typeof interpreterVersion(), "string");
        gc();
    "#)
    .unwrap();
}

#[test]
fn flags_are_seen_by_the_library() {
    let options = Options {
        nodb: true,
        retry_writes: true,
        implicit_sessions_off: true,
        read_mode: Some("legacy".into()),
        api_version: Some("1".into()),
        api_strict: true,
        heap_limit_mb: Some(99),
        shell: true,
        ..Options::default()
    };
    let script = r#"
        const eq = (a, b) => { if (a !== b) throw Error(a + " is not " + b); };
        eq(_shouldRetryWrites(), true);
        eq(_shouldUseImplicitSessions(), false);
        eq(_readMode(), "legacy");
        eq(_writeMode(), "commands");
        eq(JSON.stringify(_apiParameters()), '{"version":"1","strict":true,"deprecationErrors":false}');
        eq(getJSHeapLimitMB(), 99);
        eq(isInteractive(), true);
    "#;
    run_with(options, script, |_| {}).0.unwrap();
}

/// The natives that tests and the real shell's library call: each is there, if only to say that it is missing.
const NATIVES: &str = "
    Mongo connect _forgetReplSet _replMonitorStats NumberLong NumberInt NumberDecimal ObjectId Timestamp BinData UUID MD5
    HexData DBRef DBPointer Code MongoURI bsonWoCompare bsonUnorderedFieldsCompare bsonBinaryEqual bsonObjToArray
    Object.bsonsize tostrictjson
    _startMongoProgram _runMongoProgram runProgram run runNonMongoProgram runNonMongoProgramQuietly _stopMongoProgram
    stopMongoProgramByPid waitProgram waitMongoProgram checkProgram rawMongoProgramOutput clearRawMongoProgramOutput
    _runningMongoChildProcessIds resetDbpath copyDbpath pathExists convertTrafficRecordingToBSON
    cat writeFile appendFile copyFile copyDir removeFile mkdir listFiles ls cd pwd fileExists hostname getHostName
    getFileMode umask fuzzFile md5sumFile hex_md5 computeSHA256Block computeSHA256Hmac _getEnv _isWindows getBuildInfo getMemInfo
    _readDumpFile interpreterVersion isInteractive passwordPrompt _copyFileRange
    print load quit sleep gc version buildInfo getJSHeapLimitMB _rand _srand _setShellFailPoint benchRun benchRunSync
    benchStart benchFinish convertShardKeyToHashed getFCVConstants
    _buildBsonObj _compareStringsWithCollation _decimal128Limit _fnvHashToHexString _resultSetsEqualNormalized
    _resultSetsEqualUnordered _openGoldenData _writeGoldenData _closeGoldenData _createSecurityToken _createTenantToken
    numberDecimalsEqual numberDecimalsAlmostEqual getStringWidth decompressBSONColumn _getObjInDumpFile
    _numObjsInDumpFile decodeResumeToken
    Thread ScopedThread _threadInject _scopedThreadInject CountDownLatch CountDownLatch._new CountDownLatch._await
    CountDownLatch._countDown CountDownLatch._getCount";

#[test]
fn every_native_of_the_real_shell_is_defined() {
    let script = format!(
        r#"const absent = `{NATIVES}`.trim().split(/\s+/).filter(name => {{
            return typeof name.split(".").reduce((o, part) => o && o[part], globalThis) !== "function";
        }});
        if (absent.length) throw Error(absent.join());"#
    );
    run(&script).unwrap();
}
