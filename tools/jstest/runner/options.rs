//! The command line of the runner.

use super::kind::Kind;
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Seconds a test may take when neither the command line nor its suite says otherwise.
const TIMEOUT: u64 = 300;

/// Runs tests written for the legacy mongo shell, each in a shell process of its own.
///
/// Exit codes: 0 all passed, 1 some failed, 2 bad usage, 3 nothing ran, 130 interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "jstest",
    version,
    after_help = "`jstest shell ...` is the shell itself, as is the binary under the name `mongo`."
)]
pub(super) struct Options {
    /// What the tests run against; several, separated by commas, run each test on each. `none`: a test starts its own
    /// servers. Without it every test runs on the smallest fixture its tags allow.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "none|standalone|set|sharded",
        conflicts_with = "suite"
    )]
    pub fixture: Vec<Kind>,

    /// A suite: a YAML file that names fixture, files and exclusions. May be repeated. FILE arguments replace its files.
    #[arg(long, value_name = "FILE.yml")]
    pub suite: Vec<PathBuf>,

    /// Loads the shell's library from the JavaScript files of this directory instead of the built-in one.
    #[arg(long, value_name = "DIR")]
    pub shell_lib: Option<PathBuf>,

    /// What load(), import and relative test names start from. Default: the nearest directory upward with `jstests` in it.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// How many tests run at once. Default: the number of processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: Option<u16>,

    /// Seconds after which a test is dumped and killed. Default: the suite's, or 300.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: Option<u64>,

    /// Runs only tests with one of these tags.
    #[arg(long, value_delimiter = ',', value_name = "TAG,..")]
    pub include_tags: Vec<String>,

    /// Skips tests with one of these tags.
    #[arg(long, value_delimiter = ',', value_name = "TAG,..")]
    pub exclude_tags: Vec<String>,

    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Writes the result as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Test files, directories, globs, and lists (`@LIST`: one of these a line, `#` begins a comment).
    #[arg(value_name = "FILE|GLOB|@LIST")]
    pub selection: Vec<String>,
}

impl Options {
    pub(super) fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(processors, usize::from)
    }

    /// The time limit of a test whose suite says `suite`. The command line wins.
    pub(super) fn timeout(&self, suite: Option<u64>) -> Duration {
        Duration::from_secs(self.timeout.or(suite).unwrap_or(TIMEOUT))
    }

    /// The directory names are relative to, absolute.
    pub(super) fn root(&self) -> std::io::Result<PathBuf> {
        match &self.root {
            Some(root) => root.canonicalize(),
            None => {
                let here = std::env::current_dir()?;
                let with_tests = here.ancestors().find(|d| d.join("jstests").is_dir());
                Ok(with_tests.unwrap_or(&here).to_path_buf())
            }
        }
    }
}
