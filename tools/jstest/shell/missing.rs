//! Natives of the real shell that this one does not have. Each is there, so that a test that only might call it runs,
//! and throws when it is called; the runner lists by name what was called.

use crate::natives::define;
use crate::{Shared, Shell, errors};
use parking_lot::Mutex;
use rquickjs::{Ctx, Result, Value};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;

/// Names of natives that a test called and this shell does not have.
pub struct Missing {
    names: Mutex<BTreeSet<String>>,
    /// Where the runner reads them: JSON lines `{"missing": "name"}`.
    result: Option<PathBuf>,
}

impl Default for Missing {
    fn default() -> Missing {
        Missing { names: Mutex::default(), result: std::env::var_os("JSTEST_RESULT").map(PathBuf::from) }
    }
}

impl Missing {
    /// The same, written to `result`.
    pub fn writing_to(result: PathBuf) -> Missing {
        Missing { names: Mutex::default(), result: Some(result) }
    }
    pub fn names(&self) -> Vec<String> {
        self.names.lock().iter().cloned().collect()
    }
    fn record(&self, name: &str) {
        if !self.names.lock().insert(name.to_string()) {
            return;
        }
        let Some(path) = &self.result else { return };
        // One write, so that lines of several processes do not mix.
        let line = format!("{}\n", serde_json::json!({ "missing": name }));
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            eprintln!("cannot write to {}: {error}", path.display());
        }
    }
}

/// By what they would need.
const NAMES: &[&str] = &[
    // Tenants.
    "_createSecurityToken",
    "_createTenantToken",
    // Formats of the servers' files that nobody has published.
    "convertTrafficRecordingToBSON",
    "decompressBSONColumn",
];

/// Defines what nobody else has.
pub fn register(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    for &name in NAMES {
        if ctx.globals().get::<_, Value>(name)?.is_undefined() {
            let shell = shell.clone();
            define(ctx, name, move |ctx: Ctx<'_>| call(&ctx, &shell.shared, name))?;
        }
    }
    Ok(())
}

fn call(ctx: &Ctx<'_>, shared: &Shared, name: &str) -> Result<()> {
    shared.missing.record(name);
    Err(errors::throw(ctx, &format!("missing native: {name}")))
}

#[cfg(test)]
mod tests {
    use super::Missing;
    use crate::testing::run_with_shared;
    use crate::{Options, Shared};

    #[test]
    fn a_missing_native_throws_and_is_recorded_once() {
        let directory = tempfile::tempdir().unwrap();
        let result = directory.path().join("result");
        let mut shared = Shared::new(Box::new(std::io::sink()));
        shared.missing = Missing::writing_to(result.clone());
        let shared = std::sync::Arc::new(shared);
        let script = r#"
            for (let i = 0; i < 2; i++) {
                try { _createTenantToken({}); throw Error("did not throw"); } catch (e) {
                    if (e.message !== "missing native: _createTenantToken") throw e;
                }
            }
        "#;
        let options = Options { nodb: true, ..Options::default() };
        run_with_shared(options, script, &shared).unwrap();
        assert_eq!(shared.missing.names(), ["_createTenantToken"]);
        assert_eq!(std::fs::read_to_string(result).unwrap(), "{\"missing\":\"_createTenantToken\"}\n");
    }
}
