//! The list of what is to run: files of the command line or of suites, each with its fixture and settings.

use super::header;
use super::kind::Kind;
use super::needs;
use super::options::Options;
use super::selection;
use super::suite::{Passthrough, Shell, Suite};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What all tests of one suite, or of the command line, have in common.
#[derive(Debug)]
pub(super) struct Settings {
    pub suite: Option<String>,
    pub shell: Shell,
    pub passthrough: Vec<Passthrough>,
    pub timeout: Duration,
}

/// One test on one fixture.
#[derive(Debug)]
pub(super) struct Case {
    pub path: PathBuf,
    /// What reports call it.
    pub name: String,
    pub fixture: Kind,
    pub settings: Arc<Settings>,
    pub verdict: Verdict,
}

/// What is known about a test before it runs.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Run,
    Skip(String),
    /// Its header cannot be read, which is a failure.
    Broken(String),
}

/// The cases that options and suites ask for, and the globs that matched nothing.
pub(super) fn plan(options: &Options, root: &Path) -> Result<(Vec<Case>, Vec<String>), String> {
    let mut plan = Plan { options, root, cases: Vec::new(), empty: Vec::new() };
    if options.suite.is_empty() {
        plan.add_selection()?;
    }
    for path in &options.suite {
        let path = [path.clone(), root.join(path)].into_iter().find(|p| p.exists()).unwrap_or(path.clone());
        plan.add_suite(Suite::read(&path)?)?;
    }
    Ok((plan.cases, plan.empty))
}

struct Plan<'a> {
    options: &'a Options,
    root: &'a Path,
    cases: Vec<Case>,
    empty: Vec<String>,
}

impl Plan<'_> {
    fn files(&mut self, patterns: &[String]) -> Result<Vec<PathBuf>, String> {
        let (files, empty) = selection::files(patterns, self.root)?;
        self.empty.extend(empty);
        Ok(files)
    }

    fn add_selection(&mut self) -> Result<(), String> {
        let files = self.files(&self.options.selection)?;
        let settings = Arc::new(Settings {
            suite: None,
            shell: Shell::default(),
            passthrough: Vec::new(),
            timeout: self.options.timeout(None),
        });
        let mut kinds = self.options.fixture.clone();
        kinds.sort_unstable();
        kinds.dedup();
        match kinds.is_empty() {
            true => files.iter().for_each(|path| self.add(path, None, &settings, |_| None)),
            false => kinds.iter().for_each(|kind| {
                files.iter().for_each(|path| self.add(path, Some(*kind), &settings, |_| None));
            }),
        }
        Ok(())
    }

    fn add_suite(&mut self, suite: Suite) -> Result<(), String> {
        let patterns = match self.options.selection.is_empty() {
            true => suite.files.as_slice(),
            false => &self.options.selection,
        };
        let files = self.files(patterns)?;
        let mut excluded: Vec<(HashSet<PathBuf>, String)> = Vec::new();
        for exclusion in &suite.exclude {
            // An exclusion that excludes nothing has outlived its file, and its reason.
            let in_suite = |e| format!("suite {}: exclude: {e}", suite.name);
            let (paths, empty) = selection::files(exclusion.files.as_slice(), self.root).map_err(in_suite)?;
            if let Some(pattern) = empty.first() {
                return Err(in_suite(format!("{pattern}: matches no file")));
            }
            excluded.push((paths.into_iter().collect(), exclusion.reason.clone()));
        }
        let settings = Arc::new(Settings {
            suite: Some(suite.name),
            shell: suite.shell,
            passthrough: suite.passthrough,
            timeout: self.options.timeout(suite.timeout),
        });
        for path in &files {
            let by_file =
                excluded.iter().find(|(paths, _)| paths.contains(path)).map(|(_, reason)| reason.clone());
            if let Some(reason) = by_file {
                self.push(path, suite.fixture, &settings, Verdict::Skip(reason));
                continue;
            }
            let includes = &suite.tags.include;
            if !includes.is_empty()
                && header_of(path).is_ok_and(|tags| !tags.iter().any(|t| includes.contains(t)))
            {
                continue;
            }
            self.add(path, Some(suite.fixture), &settings, |tags| {
                let hit = suite.tags.exclude.iter().find(|e| tags.contains(&e.tag))?;
                Some(format!("{}: {}", hit.tag, hit.reason))
            });
        }
        Ok(())
    }

    /// Adds a file unless `--include-tags` leaves it out. `excluded` answers a suite's reason not to run it.
    fn add(
        &mut self,
        path: &Path,
        kind: Option<Kind>,
        settings: &Arc<Settings>,
        excluded: impl Fn(&[String]) -> Option<String>,
    ) {
        let tags = match header_of(path) {
            Ok(tags) => tags,
            Err(error) => {
                let kind = kind.unwrap_or(Kind::None);
                return self.push(path, kind, settings, Verdict::Broken(error));
            }
        };
        let include = &self.options.include_tags;
        if !include.is_empty() && !tags.iter().any(|t| include.contains(t)) {
            return;
        }
        let kind = kind.unwrap_or_else(|| needs::smallest_fixture(&tags));
        let by_option = tags.iter().find(|t| self.options.exclude_tags.contains(t));
        let reason = by_option
            .map(|tag| format!("{tag}: excluded by --exclude-tags"))
            .or_else(|| excluded(&tags))
            .or_else(|| needs::unmet(&tags, kind, &settings.passthrough));
        self.push(path, kind, settings, reason.map_or(Verdict::Run, Verdict::Skip));
    }

    fn push(&mut self, path: &Path, fixture: Kind, settings: &Arc<Settings>, verdict: Verdict) {
        let name = path.strip_prefix(self.root).unwrap_or(path).to_string_lossy().into_owned();
        let case = Case { path: path.to_path_buf(), name, fixture, settings: settings.clone(), verdict };
        self.cases.push(case);
    }
}

fn header_of(path: &Path) -> Result<Vec<String>, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("it cannot be read: {e}"))?;
    header::tags(&String::from_utf8_lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Plans in a directory with `files`; answers `name fixture verdict` a case.
    fn planned(files: &[(&str, &str)], arguments: &[&str]) -> Result<Vec<String>, String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (name, text) in files {
            std::fs::write(root.join(name), text).unwrap();
        }
        let options = Options::parse_from(std::iter::once("jstest").chain(arguments.iter().copied()));
        let (cases, _) = plan(&options, &root)?;
        let line = |case: &Case| {
            let verdict = match &case.verdict {
                Verdict::Run => "run".to_string(),
                Verdict::Skip(reason) => format!("skip {reason}"),
                Verdict::Broken(reason) => format!("broken {reason}"),
            };
            format!("{} {} {verdict}", case.name, case.fixture.name())
        };
        Ok(cases.iter().map(line).collect())
    }

    const FILES: &[(&str, &str)] = &[
        ("plain.js", "1"),
        ("own.js", "// @tags: [requires_own_servers]"),
        ("shards.js", "// @tags: [requires_sharding, slow]"),
        ("bad.js", "// @tags: [a"),
    ];

    #[test]
    fn without_a_fixture_each_test_gets_the_smallest() {
        let lines = planned(FILES, &["plain.js", "own.js", "shards.js"]).unwrap();
        assert_eq!(lines, ["plain.js standalone run", "own.js none run", "shards.js sharded run"]);
    }

    #[test]
    fn several_fixtures_run_each_test_on_each() {
        let lines = planned(FILES, &["--fixture", "sharded,standalone", "plain.js", "shards.js"]).unwrap();
        assert_eq!(lines[0], "plain.js standalone run");
        assert!(lines[1].starts_with("shards.js standalone skip requires_sharding"));
        assert_eq!(lines[2..], ["plain.js sharded run", "shards.js sharded run"]);
    }

    #[test]
    fn tags_include_and_exclude() {
        assert_eq!(planned(FILES, &["--include-tags", "slow,other", "*.js"]).unwrap().len(), 2);
        let lines = planned(FILES, &["--exclude-tags", "slow", "shards.js"]).unwrap();
        assert_eq!(lines, ["shards.js sharded skip slow: excluded by --exclude-tags"]);
    }

    #[test]
    fn a_broken_header_is_reported_and_not_lost() {
        let lines = planned(FILES, &["bad.js"]).unwrap();
        assert_eq!(lines, ["bad.js none broken the list after @tags: is not closed"]);
    }

    #[test]
    fn a_suite_excludes_files_and_tags_with_reasons() {
        let suite = "fixture: sharded\nfiles: ['*.js']\nexclude:\n  - {files: plain.js, reason: too plain}\n  - {files: \
                     bad.js, reason: broken}\ntags:\n  exclude:\n    - {tag: slow, reason: takes long}\n";
        let files = [FILES, &[("s.yml", suite)]].concat();
        let lines = planned(&files, &["--suite", "s.yml"]).unwrap();
        assert_eq!(lines[0], "bad.js sharded skip broken");
        assert!(lines[1].starts_with("own.js sharded skip requires_own_servers"));
        assert_eq!(
            lines[2..],
            ["plain.js sharded skip too plain", "shards.js sharded skip slow: takes long"]
        );
        assert_eq!(planned(&files, &["--suite", "s.yml", "plain.js"]).unwrap().len(), 1);
    }

    #[test]
    fn an_exclusion_of_nothing_is_an_error() {
        let suite = "fixture: set\nfiles: ['*.js']\nexclude:\n  - {files: gone.js, reason: r}\n";
        assert!(
            planned(&[FILES, &[("s.yml", suite)]].concat(), &["--suite", "s.yml"])
                .unwrap_err()
                .contains("gone.js")
        );
    }
}
