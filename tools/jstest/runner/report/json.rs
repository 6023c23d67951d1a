//! The result as JSON.

use super::Result;
use crate::runner::outcome::Status;
use serde_json::{Map, Value, json};

/// One object: counts, missing natives, and `tests`, one object a test with the fields of
/// [`Outcome`](crate::runner::outcome::Outcome).
pub(crate) fn render(result: &Result<'_>) -> String {
    let counts: Map<String, Value> =
        Status::ALL.iter().map(|s| (s.name().to_string(), result.count(*s).into())).collect();
    let whole = json!({
        "root": result.root.display().to_string(),
        "seconds": result.seconds,
        "counts": counts,
        "not_run": result.not_run,
        "missing_natives": result.missing_natives(),
        "tests": result.outcomes,
    });
    format!("{whole:#}\n")
}
