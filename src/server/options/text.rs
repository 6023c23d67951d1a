//! What `--version` and `--help` print.

use super::Program;
use super::flags::Argument;
use document::{Document, Value, doc};

/// The version claimed on the wire and by `--version`; with it goes the wire version ([`MAX_WIRE_VERSION`]). The revision is
/// shown where the real server shows its own.
pub use node::read::explain::{GIT_VERSION, SERVER_VERSION as VERSION};
pub const VERSION_ARRAY: [i32; 4] = [8, 0, 4, 0];
/// 25 is 8.0. The one constant that decides what drivers use.
pub const MAX_WIRE_VERSION: i32 = 25;
pub const FEATURE_COMPATIBILITY_VERSION: &str = "8.0";

/// The fields of `buildInfo`.
pub fn build_info() -> Document {
    doc! {
        "version": VERSION,
        "gitVersion": GIT_VERSION,
        "modules": [],
        "allocator": "mimalloc",
        "javascriptEngine": "quickjs",
        "sysInfo": "deprecated",
        "versionArray": Value::Array(VERSION_ARRAY.iter().map(|n| Value::Int32(*n)).collect()),
        "openssl": { "running": "disabled", "compiled": "disabled" },
        "buildEnvironment": {
            "distmod": "",
            "distarch": std::env::consts::ARCH,
            "cc": "rustc",
            "ccflags": "",
            "cxx": "rustc",
            "cxxflags": "",
            "linkflags": "",
            "target_arch": std::env::consts::ARCH,
            "target_os": std::env::consts::OS,
            "cppdefines": "",
        },
        "bits": 64,
        "debug": cfg!(debug_assertions),
        "maxBsonObjectSize": 16 * 1024 * 1024,
        "storageEngines": ["wiredTiger"],
    }
}

/// First line `db version v8.0.4` or `mongos version v8.0.4`; launchers parse it.
pub fn version(program: Program) -> String {
    let first = match program {
        Program::Mongod => "db version",
        Program::Mongos => "mongos version",
    };
    let info = serde_json::json!({
        "version": VERSION,
        "gitVersion": GIT_VERSION,
        "modules": [],
        "allocator": "mimalloc",
        "environment": {
            "distarch": std::env::consts::ARCH,
            "target_arch": std::env::consts::ARCH,
        },
    });
    let json = serde_json::to_string_pretty(&info).unwrap_or_default().replace("  ", "    ");
    format!("{first} v{VERSION}\nBuild Info: {json}")
}

/// One option a line, with its name first: mlaunch forwards what it finds there.
pub fn help(program: Program) -> String {
    let mut out = String::from("Options:\n");
    for flag in super::parse::shown(program) {
        let mut left = match flag.short {
            Some(c) => format!("  -{c} [ --{} ]", flag.name),
            None => format!("  --{}", flag.name),
        };
        match flag.argument {
            Argument::Verbosity => left.push_str(" [=arg(=v)]"),
            _ if flag.takes_value() => left.push_str(" arg"),
            _ => {}
        }
        out.push_str(&format!("{left:<40} {}\n", flag.help));
    }
    out.pop();
    out
}
