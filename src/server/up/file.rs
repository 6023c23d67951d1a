//! `tessera up --config FILE`: the options in a YAML file, under their long names.
//!
//! ```yaml
//! shards: 3
//! auth: true
//! set-parameter: { ttlMonitorSleepSecs: 1 }
//! ```
//! The file is turned into arguments and read by the same parser, so that a wrong one is told in the same words. What the command line
//! says counts.

use super::{Cli, CliCommand, Up};
use clap::Parser;
use serde_json::Value;
use std::path::Path;

impl Up {
    /// With what the file of `--config` says; `given` are the arguments behind `up`.
    ///
    /// # Errors
    /// What is wrong with the file, as a text.
    pub fn with_file(self, given: &[String]) -> Result<Up, String> {
        let Some(path) = &self.config else { return Ok(self) };
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| format!("error: cannot read {shown}: {e}"))?;
        let args = arguments(&text).map_err(|why| format!("error: {shown}: {why}"))?;
        let all = ["tessera", "up"].map(str::to_string).into_iter().chain(args).chain(given.iter().cloned());
        match Cli::try_parse_from(all) {
            Ok(Cli { command: CliCommand::Up(mut up) }) => {
                relative_to(path, &mut up);
                Ok(*up)
            }
            Ok(_) => Err(format!("error: {shown} has no options of up")),
            Err(error) => Err(format!("error: {shown}: {}", error.to_string().trim_start_matches("error: "))),
        }
    }
}

/// A directory in the file is meant from where the file is.
fn relative_to(file: &Path, up: &mut Up) {
    if let (Some(path), Some(dir)) = (&up.dbpath, file.parent())
        && path.is_relative()
        && !path.exists()
    {
        up.dbpath = Some(dir.join(path));
    }
}

fn arguments(text: &str) -> Result<Vec<String>, String> {
    let parsed: Value = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
    let Value::Object(options) = parsed else { return Err("expected a mapping of options".to_string()) };
    let mut args = Vec::new();
    for (name, value) in &options {
        match value {
            Value::Bool(true) => args.push(format!("--{name}")),
            Value::Bool(false) | Value::Null => {}
            Value::Object(pairs) => {
                for (key, value) in pairs {
                    args.push(format!("--{name}={key}={}", scalar(name, value)?));
                }
            }
            value => args.push(format!("--{name}={}", scalar(name, value)?)),
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
        let mut found = arguments(text).unwrap();
        found.sort();
        assert_eq!(found, expected);
        assert!(arguments("- 1").is_err() && arguments("shards: [1]").is_err());
    }

    #[test]
    fn the_command_line_counts_and_mistakes_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("up.yml");
        std::fs::write(&path, "shards: 3\nrouters: 2\ndbpath: data\n").unwrap();
        let given = ["--config".to_string(), path.display().to_string(), "--shards=1".to_string()];
        let parse = |args: &[String]| {
            let all = ["tessera".to_string(), "up".to_string()];
            match Cli::try_parse_from(all.iter().chain(args)).unwrap().command {
                CliCommand::Up(up) => up.with_file(args),
                _ => unreachable!(),
            }
        };
        let up = parse(&given).unwrap();
        assert_eq!((up.shards, up.routers, up.dbpath), (1, 2, Some(dir.path().join("data"))));
        std::fs::write(&path, "shard: 3\n").unwrap();
        assert!(parse(&given).unwrap_err().contains("--shard"));
    }
}
