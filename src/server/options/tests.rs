//! Options: flags, files, and how they go together.

use super::*;

fn argv(program: Program, line: &str) -> Vec<String> {
    std::iter::once(program.name()).chain(line.split_whitespace()).map(str::to_string).collect()
}
fn run(program: Program, line: &str) -> Options {
    match parse(program, &argv(program, line)) {
        Ok(Action::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}
fn mongod(line: &str) -> Options {
    run(Program::Mongod, line)
}
fn refused(program: Program, line: &str) -> Refused {
    match parse(program, &argv(program, line)) {
        Err(refused) => refused,
        Ok(action) => panic!("{line}: {action:?}"),
    }
}

#[test]
fn flags_take_their_value_after_a_space_or_an_equals_sign() {
    for line in ["--port 5 --dbpath /x --replSet rs0", "--port=5 --dbpath=/x --replSet=rs0"] {
        let o = mongod(line);
        assert_eq!((o.port, o.dbpath.to_str(), o.repl_set.as_deref()), (5, Some("/x"), Some("rs0")));
    }
}

#[test]
fn the_short_form_takes_its_value_attached_or_after() {
    for line in ["-f /no/such/file", "-f=/no/such/file", "-f/no/such/file", "-vf /no/such/file"] {
        let text = refused(Program::Mongod, line).text;
        assert_eq!(text, "Error opening config file: No such file or directory", "{line}");
    }
}

#[test]
fn levels_are_counted_in_vs() {
    let lines =
        ["-vvv", "--vvv", "-v -v -v", "-vv --verbose", "--verbose=vvv", "--verbose=3", "-v --verbose=3"];
    for line in lines {
        assert_eq!(mongod(line).verbosity, 3, "{line}");
    }
    assert_eq!(mongod("--verbose").verbosity, 1);
}

#[test]
fn what_a_node_listens_with_and_whom_it_lets_in_can_be_said() {
    assert!(mongod("--noauth").is_auth_declined() && !mongod("--port 1").is_auth_declined());
    let o = mongod("--filePermissions 0770 --listenBacklog 7");
    assert_eq!((o.unix_socket_mode, o.listen_backlog), (0o770, 7));
    let o = mongod("--port 1");
    assert_eq!((o.unix_socket_mode, o.listen_backlog), (0o700, 4096));
    for bad in ["--filePermissions 0999", "--filePermissions 01777", "--clusterIpSourceAllowlist 1.2.3.4,x"] {
        assert!(refused(Program::Mongod, bad).text.starts_with("BadValue: "), "{bad}");
    }
}

#[test]
fn the_last_of_contradictory_flags_counts_and_switches_take_a_truth_after_an_equals_sign() {
    assert!(!mongod("--auth --noauth").auth);
    assert!(mongod("--noauth --auth").auth);
    assert_eq!(mongod("--port 5 --slowms 7 --port 6").port, 6);
    assert!(mongod("--ipv6=true").ipv6);
    assert!(!mongod("--ipv6 --ipv6=false").ipv6);
    assert_eq!(mongod("--slowms -1").slow_ms, -1);
    mongod("--enableMajorityReadConcern true --port 5");
    mongod("--enableMajorityReadConcern --port 5");
}

#[test]
fn roles_choose_the_default_port_and_path() {
    assert_eq!(mongod("").port, 27017);
    assert_eq!(mongod("--shardsvr --replSet a").port, 27018);
    let config = mongod("--configsvr --replSet a");
    assert_eq!((config.port, config.dbpath.to_str()), (27019, Some("/data/configdb")));
}

#[test]
fn parsed_options_have_the_paths_of_the_real_server() {
    let o = mongod(
        "--port 5 --fork --logpath /l --logappend -vv --auth --setParameter a=b --setParameter enableTestCommands=1 --slowms 7 --profile 1",
    );
    let want = document::doc! {
        "net": { "port": 5 },
        "processManagement": { "fork": true },
        "systemLog": { "path": "/l", "destination": "file", "logAppend": true, "verbosity": 2 },
        "security": { "authorization": "enabled" },
        "setParameter": { "a": "b", "enableTestCommands": "1" },
        "operationProfiling": { "slowOpThresholdMs": 7, "mode": "slowOp" },
    };
    assert_eq!(o.parsed, want);
    assert_eq!((o.verbosity, o.profile, o.slow_ms, o.auth), (2, 1, 7, true));
}

#[test]
fn launchers_argument_lists_are_accepted() {
    let lines = [
        "--port 1 --dbpath /d --replSet testset --storageEngine wiredTiger --bind_ip 127.0.0.1 --noauth",
        "--configsvr --replSet r --port 0 --dbpath /d --nounixsocket",
        "--replSet N --dbpath D --logpath F --port 1 --fork --shardsvr --wiredTigerCacheSizeGB 1",
        "--bind_ip 127.0.0.1 --port 1 --tlsMode disabled --logpath /proc/1/fd/1 --logappend --pidfilepath F --fork",
        "--dbpath D --port 1 --bind_ip 127.0.0.1 --storageEngine ephemeralForTest --syncdelay=0 --oplogSize 100 --ipv6 -v",
        "--configsvr --port 27019 --replSet c --dbpath D --syslog",
    ];
    for line in lines {
        mongod(line);
    }
    let o = run(Program::Mongos, "--configdb configRepl/localhost:5,localhost:6 --port 1 --nounixsocket");
    assert_eq!(o.config_db.as_deref(), Some("configRepl/localhost:5,localhost:6"));
    assert!(!o.unix_socket);
}

#[test]
fn mistakes_are_refused_with_the_real_texts() {
    let cases = [
        (
            "--x",
            "Error parsing command line: unrecognised option '--x'\ntry 'mongod --help' for more information",
        ),
        (
            "--port",
            "Error parsing command line: the required argument for option '--port' is missing\ntry 'mongod --help' for more information",
        ),
        (
            "--port a",
            "Error parsing command line: the argument ('a') for option '--port' is invalid\ntry 'mongod --help' for more information",
        ),
        (
            "--port 5 --x=7",
            "Error parsing command line: unrecognised option '--x'\ntry 'mongod --help' for more information",
        ),
        (
            "--slowms 5 -f",
            "Error parsing command line: the required argument for option '--config' is missing\ntry 'mongod --help' for more information",
        ),
        (
            "--fork yes",
            "Error parsing command line: too many positional options have been specified on the command line\ntry 'mongod --help' for more information",
        ),
        (
            "extra",
            "Error parsing command line: too many positional options have been specified on the command line\ntry 'mongod --help' for more information",
        ),
        ("--port 70000", "BadValue: error: invalid port number"),
        ("--fork", "BadValue: --fork has to be used with --logpath or --syslog"),
        ("--setParameter nope=1", "BadValue: Unknown --setParameter 'nope'"),
        ("--config /no/such/file", "Error opening config file: No such file or directory"),
    ];
    for (line, text) in cases {
        assert_eq!(
            refused(Program::Mongod, line),
            Refused { text: text.to_string(), exit_code: 2 },
            "{line}"
        );
    }
    assert_eq!(refused(Program::Mongos, "").text, "BadValue: error: no args for --configdb");
    mongod("--setParameter nope=1 --setParameter enableTestCommands=1");
}

#[test]
fn a_fail_point_can_be_set_on_the_command_line() {
    let o = mongod("--setParameter failpoint.failCommand={mode:'off'} --setParameter enableTestCommands=1");
    let set = ("failpoint.failCommand".to_string(), "{mode:'off'}".to_string());
    assert!(o.set_parameters.contains(&set), "{:?}", o.set_parameters);
}

fn with_file(text: &str, f: impl FnOnce(&str)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.conf");
    std::fs::write(&path, text).unwrap();
    f(path.to_str().unwrap());
}

#[test]
fn a_yaml_file_sets_the_same_paths_and_the_command_line_wins() {
    let text = "# mongod.conf\nsystemLog:\n  destination: file\n  path: \"/l\"\n  logAppend: true\n  logRotate: reopen\nnet:\n  port: 5\n  bindIp: 127.0.0.1,::1\n  unixDomainSocket:\n    enabled: false\nsecurity:\n  authorization: disabled\n#  keyFile: x\nreplication:\n  replSetName: rs9\nsetParameter:\n  enableLocalhostAuthBypass: false\n  ttlMonitorSleepSecs: 5\n";
    with_file(text, |path| {
        let o = mongod(&format!("--config {path} --port 6"));
        assert_eq!((o.port, o.repl_set.as_deref(), o.unix_socket), (6, Some("rs9"), false));
        assert_eq!(o.bind_ip, ["127.0.0.1", "::1"]);
        assert!(o.log_append && !o.log_rename && !o.auth);
        assert_eq!(o.parsed.get_path("setParameter.ttlMonitorSleepSecs"), Some(&Value::Int32(5)));
        assert_eq!(o.set_parameters[0], ("enableLocalhostAuthBypass".to_string(), "false".to_string()));
    });
    with_file("net:\n  prot: 5\n", |path| {
        let text = refused(Program::Mongod, &format!("-f {path}")).text;
        assert_eq!(text, "Error parsing YAML config file: Unrecognized option: net.prot");
    });
}

#[test]
fn an_ini_file_is_read_by_flag_names() {
    let text = "oplogSize=100\nlogappend=true\nverbose=vvv\ndbpath=/d\nlogpath = /l\nport=5\nnetworkMessageCompressors=zstd,noop\nreplSet=r\nshardsvr=true\nsetParameter = enableTestCommands=1\nsetParameter=periodicNoopIntervalSecs=1\n";
    with_file(text, |path| {
        let o = mongod(&format!("--config {path}"));
        assert_eq!((o.port, o.verbosity, o.oplog_size), (5, 3, Some(100)));
        assert_eq!(o.cluster_role, Some(ClusterRole::Shard));
        assert_eq!(o.compressors, [Compressor::Zstd]);
        assert_eq!(o.set_parameters.len(), 2);
    });
}

#[test]
fn version_and_help_are_what_launchers_parse() {
    assert!(version(Program::Mongod).starts_with("db version v8.0.4\nBuild Info: {"));
    assert!(version(Program::Mongos).starts_with("mongos version v8.0.4\n"));
    let text = version(Program::Mongod);
    serde_json::from_str::<serde_json::Value>(text.split_once("Build Info: ").unwrap().1).unwrap();
    let help = help(Program::Mongod);
    for option in ["  --wiredTigerCacheSizeGB arg", "  --replSet arg", "  --shardsvr"] {
        assert!(help.lines().any(|l| l.starts_with(option)), "{option}");
    }
    assert_eq!(parse(Program::Mongod, &argv(Program::Mongod, "--version")), Ok(Action::Print(text)));
}

#[test]
fn no_flag_stands_twice_for_one_program() {
    for program in [Program::Mongod, Program::Mongos] {
        let mut names: Vec<_> = flags::FLAGS.iter().filter(|f| f.is_on(program)).map(|f| f.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|w| w[0] != w[1]));
    }
}
