//! Golden data: what a test writes is compared with a file that was checked in as right.
//!
//! ```text
//! _openGoldenData(testPath, {relativePath})   relativePath: where expected files are, under the root
//! _writeGoldenData(text)                      collects
//! _closeGoldenData()                          compares with ROOT/relativePath/testPath; throws when they differ
//! ```
//! What differs is left as `expected/...` and `actual/...` under one output directory, for a tool to show or accept.
//! The file that `GOLDEN_TEST_CONFIG_PATH` names says in YAML where that is (`outputRootPattern`, each `%` a random digit)
//! and which command shows a difference (`diffCmd`, with `{{expected}}` and `{{actual}}`). What a test leaves open is
//! closed when the shell ends.

use crate::natives::{define, document};
use crate::{Shared, Shell, errors};
use parking_lot::Mutex;
use rquickjs::prelude::Opt;
use rquickjs::{Ctx, Result, String as JsString, Value};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

#[cfg(test)]
mod tests;

const CONFIG_VARIABLE: &str = "GOLDEN_TEST_CONFIG_PATH";
const EXPECTED_DEFAULT: &str = "jstests/expected_output";

/// The golden data of the process: one at a time, as in the real shell.
#[derive(Default)]
pub struct Golden {
    open: Mutex<Option<Open>>,
    /// Where the files of a failure go, whatever the configuration says.
    output: Option<PathBuf>,
}

impl Golden {
    /// The same, with the files of failures in `output`.
    pub fn writing_to(output: PathBuf) -> Golden {
        Golden { open: Mutex::default(), output: Some(output) }
    }
}

struct Open {
    root: PathBuf,
    /// Where the expected file is under the root, and both files under the output directory.
    place: PathBuf,
    written: String,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    output_root_pattern: Option<String>,
    diff_cmd: Option<String>,
}

pub fn register<'js>(ctx: &Ctx<'js>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    define(ctx, "_openGoldenData", move |ctx: Ctx<'js>, path: JsString<'js>, config: Opt<Value<'js>>| {
        open(&ctx, &of, &path.to_string()?, config.0)
    })?;
    let of = shell.clone();
    define(ctx, "_writeGoldenData", move |ctx: Ctx<'js>, text: JsString<'js>| -> Result<()> {
        let text = text.to_string()?;
        match of.shared.golden.open.lock().as_mut() {
            Some(open) => open.written.push_str(&text),
            None => return Err(errors::throw(&ctx, "_writeGoldenData: no golden data is open")),
        }
        Ok(())
    })?;
    let of = shell.clone();
    define(ctx, "_closeGoldenData", move |ctx: Ctx<'_>| -> Result<()> {
        let closed = close(&of.shared);
        closed.map_err(|reason| errors::throw(&ctx, &reason))
    })
}

fn open<'js>(ctx: &Ctx<'js>, shell: &Shell, path: &str, config: Option<Value<'js>>) -> Result<()> {
    let config = config.filter(|config| !config.is_undefined());
    let config = config.map(|config| document(ctx, &config, "_openGoldenData")).transpose()?;
    let folder = config.as_ref().and_then(|config| config.doc().get_str("relativePath"));
    let place = Path::new(folder.unwrap_or(EXPECTED_DEFAULT)).join(path);
    // Both are paths below a directory; what leaves it would write anywhere.
    let below = place.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !below || path.is_empty() {
        let text = format!("_openGoldenData: {} is no path below a directory", place.display());
        return Err(errors::throw(ctx, &text));
    }
    let mut golden = shell.shared.golden.open.lock();
    if let Some(other) = golden.as_ref() {
        let text = format!("_openGoldenData: the golden data of {} are still open", other.place.display());
        return Err(errors::throw(ctx, &text));
    }
    *golden = Some(Open { root: shell.options.root.clone(), place, written: String::new() });
    Ok(())
}

/// Compares what was written; the error says what differs and where both are.
fn close(shared: &Shared) -> std::result::Result<(), String> {
    let Some(open) = shared.golden.open.lock().take() else {
        return Err("_closeGoldenData: no golden data is open".to_string());
    };
    verify(shared, &open)
}

/// Called once when the shell ends: closes what a test left open. The error is that of a file.
pub fn finish(shared: &Shared) -> std::result::Result<(), String> {
    match shared.golden.open.lock().take() {
        Some(open) => verify(shared, &open),
        None => Ok(()),
    }
}

fn verify(shared: &Shared, open: &Open) -> std::result::Result<(), String> {
    let source = open.root.join(&open.place);
    let expected = match std::fs::read_to_string(&source) {
        Ok(expected) => Some(expected),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot read {}: {error}", source.display())),
    };
    if expected.as_ref() == Some(&open.written) {
        return Ok(());
    }
    let config = config()?;
    let output = shared.golden.output.clone().unwrap_or_else(|| output_root(&config));
    let (kept, actual) = (output.join("expected").join(&open.place), output.join("actual").join(&open.place));
    let reason = match &expected {
        None => format!("Expected result file doesn't exist: {}", source.display()),
        Some(expected) => {
            format!("Actual result doesn't match expected result: {}", difference(expected, &open.written))
        }
    };
    write(&kept, expected.as_deref().unwrap_or_default())?;
    write(&actual, &open.written)?;
    if let Some(command) = &config.diff_cmd {
        show(shared, command, &kept, &actual);
    }
    Err(format!("{reason}; expected: {}, actual: {}", kept.display(), actual.display()))
}

/// The first line that is not the same.
fn difference(expected: &str, actual: &str) -> String {
    let (mut expected, mut actual) = (expected.split('\n'), actual.split('\n'));
    for line in 1.. {
        let (e, a) = (expected.next(), actual.next());
        if e != a {
            let quoted = |text: Option<&str>| text.map_or("nothing".to_string(), |text| format!("{text:?}"));
            return format!("line {line} is {}, expected {}", quoted(a), quoted(e));
        }
        if e.is_none() {
            break;
        }
    }
    "no line differs".to_string()
}

fn write(path: &Path, text: &str) -> std::result::Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn config() -> std::result::Result<Config, String> {
    let Some(path) = std::env::var_os(CONFIG_VARIABLE) else { return Ok(Config::default()) };
    let failed = |reason: String| format!("{CONFIG_VARIABLE}: {}: {reason}", Path::new(&path).display());
    let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    serde_saphyr::from_str(&text).map_err(|error| failed(error.to_string()))
}

/// Where the files of a failure go. Without a configuration: into the data directory of the test.
fn output_root(config: &Config) -> PathBuf {
    let digits = uuid::Uuid::new_v4().simple().to_string();
    let mut digits = digits.chars().cycle();
    let base = || std::env::var_os("JSTEST_DATA").map_or_else(std::env::temp_dir, PathBuf::from);
    let pattern = config.output_root_pattern.clone();
    let pattern = pattern.unwrap_or_else(|| base().join("golden-%%%%-%%%%").display().to_string());
    let filled: String =
        pattern.chars().map(|c| if c == '%' { digits.next().unwrap_or('0') } else { c }).collect();
    PathBuf::from(filled)
}

/// Prints what the configured command says of both files.
fn show(shared: &Shared, command: &str, expected: &Path, actual: &Path) {
    let command = command
        .replace("{{expected}}", &expected.display().to_string())
        .replace("{{actual}}", &actual.display().to_string());
    let text = match std::process::Command::new("sh").arg("-c").arg(&command).output() {
        Ok(output) => output.stdout,
        Err(error) => format!("cannot run {command}: {error}\n").into_bytes(),
    };
    let mut output = shared.output.lock();
    let _ = output.write_all(&text);
    let _ = output.flush();
}
