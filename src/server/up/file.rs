//! `tessera up --config FILE`: the options in a YAML file, under their long names.
//!
//! ```yaml
//! shards: 3
//! auth: true
//! set-parameter: { ttlMonitorSleepSecs: 1 }
//! ```
//! The file is turned into arguments and read by the same parser, so that a wrong one is told in the same words. What the command line
//! says counts. A directory is meant from where the file is.

use super::{Cli, CliCommand, Up};
use clap::Parser;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

impl Up {
    /// With what the file of `--config` says; `given` are the arguments behind `up`.
    ///
    /// # Errors
    /// What is wrong with the file, as a text.
    pub fn with_file(self, given: &[OsString]) -> Result<Up, String> {
        let Some(path) = &self.config else { return Ok(self) };
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| format!("error: cannot read {shown}: {e}"))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        let args = arguments(&text, dir).map_err(|why| format!("error: {shown}: {why}"))?;
        let all = ["tessera", "up"].map(OsString::from).into_iter().chain(args).chain(given.iter().cloned());
        match Cli::try_parse_from(all) {
            Ok(Cli { command: CliCommand::Up(up) }) => Ok(*up),
            Ok(_) => Err(format!("error: {shown} has no options of up")),
            Err(error) => Err(format!("error: {shown}: {}", error.to_string().trim_start_matches("error: "))),
        }
    }
}

/// The options as arguments; `dir` is where the file is.
fn arguments(text: &str, dir: &Path) -> Result<Vec<OsString>, String> {
    let parsed: Value = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
    let Value::Object(options) = parsed else { return Err("expected a mapping of options".to_string()) };
    let mut args: Vec<OsString> = Vec::new();
    for (name, value) in &options {
        match value {
            _ if name == "config" => return Err("config names this file and cannot stand in it".to_string()),
            Value::Bool(true) => args.push(format!("--{name}").into()),
            Value::Bool(false) | Value::Null => {}
            Value::Object(pairs) => {
                for (key, value) in pairs {
                    args.push(format!("--{name}={key}={}", scalar(name, value)?).into());
                }
            }
            value if name == "dbpath" => {
                let mut arg = OsString::from("--dbpath=");
                arg.push(dir.join(scalar(name, value)?));
                args.push(arg);
            }
            value => args.push(format!("--{name}={}", scalar(name, value)?).into()),
        }
    }
    Ok(args)
}

fn scalar(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(n) => Ok(n.to_string()),
        Value::Bool(b) => Ok(b.to_string()),
        _ => Err(format!("{name} has no simple value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_arguments_are() {
        let text = "shards: 3\nauth: true\nstandalone: false\nset-parameter: {a: 1, b: x}\n";
        let expected = ["--auth", "--set-parameter=a=1", "--set-parameter=b=x", "--shards=3"];
        let here = Path::new("/where/it/is");
        let mut found = arguments(text, here).unwrap();
        found.sort();
        assert_eq!(found, expected);
        assert!(arguments("- 1", here).is_err() && arguments("shards: [1]", here).is_err());
        assert!(arguments("config: other.yml", here).unwrap_err().contains("config"));
        let dbpath = |path: &str| arguments(&format!("dbpath: {path}"), here).unwrap();
        assert_eq!(dbpath("data"), ["--dbpath=/where/it/is/data"]);
        assert_eq!(dbpath("/data"), ["--dbpath=/data"]);
    }

    #[test]
    fn the_command_line_counts_and_mistakes_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("up.yml");
        // There is a directory of this name where the tests run.
        std::fs::write(&path, "shards: 3\nrouters: 2\ndbpath: up\n").unwrap();
        let config = || vec!["--config".into(), path.clone().into_os_string()];
        let parse = |args: &[OsString]| {
            let all = ["tessera", "up"].map(OsString::from);
            match Cli::try_parse_from(all.iter().chain(args)).unwrap().command {
                CliCommand::Up(up) => up.with_file(args),
                _ => unreachable!(),
            }
        };
        let given = [config(), vec!["--shards=1".into()]].concat();
        let up = parse(&given).unwrap();
        assert_eq!((up.shards, up.routers, up.dbpath), (1, 2, Some(dir.path().join("up"))));
        let elsewhere = [config(), vec!["--dbpath=data".into()]].concat();
        assert_eq!(parse(&elsewhere).unwrap().dbpath, Some("data".into()));
        std::fs::write(&path, "shard: 3\n").unwrap();
        assert!(parse(&given).unwrap_err().contains("--shard"));
    }

    #[cfg(unix)]
    #[test]
    fn a_path_need_not_be_text() {
        use std::os::unix::ffi::OsStringExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OsString::from_vec(b"up\xff.yml".to_vec()));
        std::fs::write(&path, "dbpath: data\n").unwrap();
        let given = ["--config".into(), path.into_os_string()];
        let all = ["tessera", "up"].map(OsString::from);
        let CliCommand::Up(up) = Cli::try_parse_from(all.iter().chain(&given)).unwrap().command else {
            unreachable!()
        };
        assert_eq!(up.with_file(&given).unwrap().dbpath, Some(dir.path().join("data")));
    }
}
