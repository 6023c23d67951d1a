//! What became of one test.

use super::kind::Kind;
use serde::Serialize;
use std::path::PathBuf;

/// Every way a test can end. A test has exactly one; the order is the order of the summary's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    Pass,
    /// It threw, quit with a code of its own, or its header cannot be read.
    Fail,
    /// It did not run: its tags, a suite's exclusion or an option say so.
    Skip,
    /// It was killed at its time limit.
    Timeout,
    /// The shell or the fixture died of a signal or a panic.
    Crash,
    /// It passed, and processes it had started were still running.
    Leak,
    /// It failed after it had called a native that the shell does not have.
    MissingNative,
}

impl Status {
    pub(super) const ALL: [Status; 7] = [
        Status::Pass,
        Status::Fail,
        Status::Timeout,
        Status::Crash,
        Status::Leak,
        Status::MissingNative,
        Status::Skip,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Skip => "skip",
            Status::Timeout => "timeout",
            Status::Crash => "crash",
            Status::Leak => "leak",
            Status::MissingNative => "missing-native",
        }
    }

    /// Whether it makes the run fail.
    pub(super) fn is_failure(self) -> bool {
        !matches!(self, Status::Pass | Status::Skip)
    }
}

/// The record of one test on one fixture, as the JSON result shows it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    /// The path of the file relative to the root, or as it was given when it lies elsewhere.
    pub name: String,
    pub fixture: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    pub status: Status,
    pub seconds: f64,
    /// Why it is not a plain pass; empty for one.
    pub reason: String,
    /// Where the whole output is kept; only that of a failure is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// The last lines of a failure's output, and after a timeout what every node was doing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// Natives it called that the shell does not have, whether or not it failed by them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_natives: Vec<String>,
    /// Processes it left, as command lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_running: Vec<String>,
    /// Why the fixture was replaced after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixture_replaced: Option<String>,
    /// Its output holds bytes that are no text; reports spell them out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub binary_output: bool,
}
