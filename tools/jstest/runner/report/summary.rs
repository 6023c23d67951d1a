//! The end of a run in words: a table, what failed, why tests were skipped, which natives are missing.

use super::{Result, group};
use crate::runner::outcome::{Outcome, Status};
use std::collections::BTreeMap;
use std::fmt::Write;

/// So many lines of an exception that spans several, a reply for instance, follow its first.
const EXCEPTION_LINES_MAX: usize = 16;

/// The whole summary, ending in `N passed, N failed, N skipped in S s`.
pub(crate) fn render(result: &Result<'_>) -> String {
    let mut text = String::from("\n");
    table(&mut text, result);
    skips(&mut text, result.outcomes);
    failures(&mut text, result.outcomes);
    missing(&mut text, result);
    if result.not_run > 0 {
        let _ = writeln!(text, "interrupted: {} tests did not run", result.not_run);
    }
    let (passed, failed, skipped) =
        (result.count(Status::Pass), result.failures(), result.count(Status::Skip));
    let _ = writeln!(text, "{passed} passed, {failed} failed, {skipped} skipped in {:.1} s", result.seconds);
    text
}

fn table(text: &mut String, result: &Result<'_>) {
    let mut rows: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in result.outcomes {
        rows.entry(group(outcome)).or_default().push(outcome);
    }
    let width = rows.keys().map(|name| name.len()).chain([8]).max().unwrap_or(8);
    let _ = write!(text, "{:width$}", "");
    Status::ALL.iter().for_each(|s| _ = write!(text, " {:>width$}", s.name(), width = s.name().len().max(6)));
    text.push_str("  seconds\n");
    for (name, outcomes) in &rows {
        let _ = write!(text, "{name:width$}");
        for status in Status::ALL {
            let count = outcomes.iter().filter(|o| o.status == status).count();
            let _ = write!(text, " {count:>width$}", width = status.name().len().max(6));
        }
        let seconds: f64 = outcomes.iter().map(|o| o.seconds).sum();
        let _ = writeln!(text, " {seconds:>8.1}");
    }
}

fn skips(text: &mut String, outcomes: &[Outcome]) {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|o| o.status == Status::Skip) {
        *reasons.entry(&outcome.reason).or_default() += 1;
    }
    reasons.iter().for_each(|(reason, count)| _ = writeln!(text, "skipped {count:>4}  {reason}"));
}

fn failures(text: &mut String, outcomes: &[Outcome]) {
    for outcome in outcomes.iter().filter(|o| o.status.is_failure()) {
        let (status, group) = (outcome.status.name(), group(outcome));
        let _ = writeln!(text, "{status:14} {group}  {}: {}", outcome.name, outcome.reason);
        exception(&outcome.tail).for_each(|line| _ = writeln!(text, "{:14} | {line}", ""));
        if let Some(path) = &outcome.output {
            let _ = writeln!(text, "{:14} {}", "", path.display());
        }
    }
}

/// What follows the first line of the exception that a test ended by, until the shell says that it ends.
fn exception(tail: &str) -> impl Iterator<Item = &str> {
    let begun =
        tail.lines().collect::<Vec<_>>().iter().rposition(|line| line.starts_with("uncaught exception"));
    let after = begun.map_or(usize::MAX, |at| at + 1);
    tail.lines().skip(after).take_while(|line| !line.starts_with("failed to load")).take(EXCEPTION_LINES_MAX)
}

fn missing(text: &mut String, result: &Result<'_>) {
    for (name, tests) in result.missing_natives() {
        let _ =
            writeln!(text, "missing native {name}: {tests} {}", if tests == 1 { "test" } else { "tests" });
    }
}
