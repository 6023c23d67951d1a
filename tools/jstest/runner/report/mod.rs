//! What the run shows and writes: lines or a bar while it goes on, a summary, JSON and JUnit.

pub(super) mod json;
pub(super) mod junit;
pub(super) mod progress;
pub(super) mod summary;

use super::outcome::{Outcome, Status};
use std::collections::BTreeMap;
use std::io::Write;

/// All that is known at the end of a run.
pub(super) struct Result<'a> {
    pub outcomes: &'a [Outcome],
    /// Tests that an interrupt kept from starting.
    pub not_run: usize,
    pub seconds: f64,
    pub root: &'a std::path::Path,
}

impl Result<'_> {
    pub(super) fn count(&self, status: Status) -> usize {
        self.outcomes.iter().filter(|o| o.status == status).count()
    }
    pub(super) fn failures(&self) -> usize {
        self.outcomes.iter().filter(|o| o.status.is_failure()).count()
    }
    /// Missing natives with the number of tests that called each.
    pub(super) fn missing_natives(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for name in self.outcomes.iter().flat_map(|o| &o.missing_natives) {
            *counts.entry(name.as_str()).or_default() += 1;
        }
        counts
    }
}

/// What outcomes are grouped by: the suite, or the fixture of tests without one.
pub(super) fn group(outcome: &Outcome) -> &str {
    outcome.suite.as_deref().unwrap_or(outcome.fixture.name())
}

/// Standard output may be a pipe that was closed, which ends nothing.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
