//! Configuration files: YAML by dotted path, or the old INI form by flag name.

use super::flags::{Argument, FLAGS, Flag, by_name};
use super::parse::{put, set};
use super::{Program, Refused};
use document::{Document, Value};
use serde_json::Value as Json;

/// Reads a file and tells its form from its content: INI has `name=value` on its first line that says anything.
pub(super) fn read(program: Program, path: &str) -> Result<Document, Refused> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| refused(format!("Error opening config file: {}", reason(&e))))?;
    if is_ini(&text) { ini(program, &text) } else { yaml(program, &text) }
}

fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

fn refused(text: String) -> Refused {
    Refused { text, exit_code: 2 }
}

fn is_ini(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.next().is_some_and(|line| {
        let name = line.split('=').next().unwrap_or("").trim();
        line.contains('=') && !name.contains(':') && !name.contains(' ')
    })
}

/// `name = value`, `#` comments; a switch takes true or false.
fn ini(program: Program, text: &str) -> Result<Document, Refused> {
    let mut parsed = Document::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let Some((name, value)) = line.split_once('=') else {
            return Err(refused(format!(
                "Error parsing INI config file: the options configuration file contains an invalid line '{line}'"
            )));
        };
        let (name, value) = (name.trim(), value.split(" #").next().unwrap_or("").trim());
        let Some(flag) = by_name(program, name) else {
            return Err(refused(format!("Error parsing INI config file: unrecognised option '{name}'")));
        };
        // A pair keeps its own `=`; an empty replSet or dbpath line means nothing was said.
        if value.is_empty() {
            continue;
        }
        set(&mut parsed, flag, value).map_err(|e| refused(format!("Error parsing INI config file: {e}")))?;
    }
    Ok(parsed)
}

fn yaml(program: Program, text: &str) -> Result<Document, Refused> {
    if text.lines().all(|l| l.trim().is_empty() || l.trim().starts_with('#')) {
        return Ok(Document::new());
    }
    let bad = |e: &str| refused(format!("Error parsing YAML config file: {e}"));
    let json: Json = serde_saphyr::from_str(text).map_err(|e| bad(&e.to_string()))?;
    let mut parsed = Document::new();
    match json {
        Json::Null => {}
        Json::Object(map) => {
            for (name, value) in &map {
                section(program, &mut parsed, name, value).map_err(|e| bad(&e))?;
            }
        }
        _ => return Err(bad("no top-level section")),
    }
    Ok(parsed)
}

/// One key of a file, at its dotted path.
fn section(program: Program, parsed: &mut Document, path: &str, value: &Json) -> Result<(), String> {
    if path == "setParameter" {
        let Json::Object(map) = value else { return Err("setParameter must be a mapping".to_string()) };
        for (name, value) in map {
            put(parsed, &format!("setParameter.{name}"), plain(value));
        }
        return Ok(());
    }
    if path == "systemLog.component" {
        put(parsed, path, plain(value));
        return Ok(());
    }
    match value {
        Json::Object(map) => map
            .iter()
            .try_for_each(|(name, value)| section(program, parsed, &format!("{path}.{name}"), value)),
        Json::Null => Ok(()),
        leaf => leaf_value(program, parsed, path, leaf),
    }
}

/// Paths that files spell and no flag sets as such.
const FILE_ONLY: &[(&str, Argument)] = &[
    ("systemLog.destination", Argument::Text),
    ("sharding.clusterRole", Argument::Text),
    ("security.authorization", Argument::Text),
    ("operationProfiling.mode", Argument::Text),
    ("net.unixDomainSocket.enabled", Argument::Bool),
    ("net.bindIp", Argument::Text),
    ("security.javascriptEnabled", Argument::Bool),
    ("storage.journal.enabled", Argument::Bool),
    ("net.tls.mode", Argument::Text),
    ("net.ssl.mode", Argument::Text),
    ("net.http.enabled", Argument::Bool),
    ("processManagement.windowsService.serviceName", Argument::Text),
    ("storage.wiredTiger.engineConfig.zstdCompressionLevel", Argument::Int),
    ("sharding.archiveMovedChunks", Argument::Bool),
    ("auditLog.destination", Argument::Text),
];

fn leaf_value(program: Program, parsed: &mut Document, path: &str, value: &Json) -> Result<(), String> {
    let text = match value {
        Json::String(s) => s.clone(),
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    if let Some((_, argument)) = FILE_ONLY.iter().find(|(p, _)| *p == path) {
        let flag = Flag {
            name: "",
            short: None,
            argument: *argument,
            path: "",
            on: super::flags::On::Both,
            help: "",
        };
        let mut one = Document::new();
        set(&mut one, &flag, &text)?;
        let value = one.remove("").unwrap_or(Value::Null);
        put(parsed, path, value);
        return Ok(());
    }
    let flag = FLAGS.iter().find(|f| f.path == path && f.is_on(program));
    let Some(flag) = flag else { return Err(format!("Unrecognized option: {path}")) };
    set(parsed, flag, &text)
}

fn plain(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Boolean(*b),
        Json::Number(n) => match n.as_i64() {
            Some(i) => i32::try_from(i).map_or(Value::Int64(i), Value::Int32),
            None => Value::Double(n.as_f64().unwrap_or(0.0)),
        },
        Json::String(s) => Value::from(s),
        Json::Array(items) => Value::Array(items.iter().map(plain).collect()),
        Json::Object(map) => Value::Document(map.iter().map(|(k, v)| (k.clone(), plain(v))).collect()),
    }
}
