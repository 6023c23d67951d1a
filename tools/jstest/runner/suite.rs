//! Suites: which files run on which fixture, under which tags and settings, as YAML.
//!
//! ```yaml
//! description: The core tests on one node.
//! fixture: standalone
//! files: [jstests/core/**/*.js]          # paths, directories, globs and @LISTs, relative to the root
//! exclude:
//!   - files: jstests/core/slow.js         # one or several
//!     reason: takes an hour
//! tags:
//!   include: [quick]
//!   exclude:
//!     - tag: uses_transactions
//!       reason: there are none yet
//! shell:
//!   eval: print("before every test");
//!   test_data: { skipCheckOrphans: true }
//! passthrough: [shard_collections]
//! timeout: 60
//! ```

use super::kind::Kind;
use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    /// The file's stem; not read from the file.
    #[serde(skip)]
    pub name: String,
    #[serde(default)]
    #[allow(dead_code)]
    pub description: String,
    pub fixture: Kind,
    pub files: OneOrMany,
    #[serde(default)]
    pub exclude: Vec<Exclusion>,
    #[serde(default)]
    pub tags: Tags,
    #[serde(default)]
    pub shell: Shell,
    #[serde(default)]
    pub passthrough: Vec<Passthrough>,
    /// Seconds a test may take.
    pub timeout: Option<u64>,
}

/// Files that are in the selection and yet do not run, which must have a reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exclusion {
    pub files: OneOrMany,
    pub reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tags {
    #[serde(default)]
    pub include: Vec<String>,
    #[serde(default)]
    pub exclude: Vec<ExcludedTag>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExcludedTag {
    pub tag: String,
    pub reason: String,
}

/// What the shell evaluates before a test.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shell {
    #[serde(default)]
    pub eval: String,
    #[serde(default)]
    pub test_data: serde_json::Map<String, serde_json::Value>,
}

/// Something the shell does behind the test's back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Passthrough {
    /// Shards every collection on `{_id: "hashed"}` before it is first written to.
    ShardCollections,
}

impl Passthrough {
    pub(super) const ALL: [Passthrough; 1] = [Passthrough::ShardCollections];

    /// The JavaScript that does it.
    pub(super) fn source(self) -> &'static str {
        match self {
            Passthrough::ShardCollections => include_str!("../prelude/passthrough/shard_collections.js"),
        }
    }
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Passthrough::ShardCollections => "shard_collections.js",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        }
    }
}

impl Suite {
    /// Reads a suite. The error names the file and what is wrong in it.
    pub(super) fn read(path: &Path) -> Result<Suite, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut suite = Suite::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        suite.name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(suite)
    }

    pub(super) fn parse(text: &str) -> Result<Suite, String> {
        let suite: Suite = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
        if let Some(e) = suite.exclude.iter().find(|e| e.reason.trim().is_empty()) {
            return Err(format!("the exclusion of {} has no reason", e.files.as_slice().join(", ")));
        }
        if let Some(e) = suite.tags.exclude.iter().find(|e| e.reason.trim().is_empty()) {
            return Err(format!("the exclusion of tag {} has no reason", e.tag));
        }
        if suite.passthrough.contains(&Passthrough::ShardCollections) && suite.fixture != Kind::Sharded {
            return Err("passthrough shard_collections needs the fixture sharded".to_string());
        }
        Ok(suite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_suite_is_understood() {
        let suite = Suite::parse(
            "description: d\nfixture: sharded\nfiles: [a.js, 'b/*.js']\nexclude:\n  - files: c.js\n    reason: slow\ntags:\n  \
             include: [x]\n  exclude:\n    - {tag: y, reason: no}\nshell:\n  eval: print(1)\n  test_data: {n: 1, deep: \
             {a: [1, two]}}\npassthrough: [shard_collections]\ntimeout: 7\n",
        )
        .unwrap();
        assert_eq!(suite.fixture, Kind::Sharded);
        assert_eq!(suite.files.as_slice(), ["a.js", "b/*.js"]);
        assert_eq!(suite.exclude[0].files.as_slice(), ["c.js"]);
        assert_eq!(suite.tags.exclude[0].tag, "y");
        assert_eq!(
            serde_json::Value::from(suite.shell.test_data).to_string(),
            r#"{"deep":{"a":[1,"two"]},"n":1}"#
        );
        assert_eq!(suite.passthrough, [Passthrough::ShardCollections]);
        assert_eq!(suite.timeout, Some(7));
    }

    #[test]
    fn exclusions_must_have_reasons() {
        let no_reason = "fixture: set\nfiles: a.js\nexclude:\n  - files: b.js\n";
        assert!(Suite::parse(no_reason).unwrap_err().contains("reason"));
        let empty = "fixture: set\nfiles: a.js\nexclude:\n  - {files: b.js, reason: ' '}\n";
        assert!(Suite::parse(empty).unwrap_err().contains("b.js has no reason"));
    }

    #[test]
    fn unknown_fields_and_fixtures_are_refused() {
        assert!(Suite::parse("fixture: set\nfiles: a.js\nfile: b\n").is_err());
        assert!(Suite::parse("fixture: cluster\nfiles: a.js\n").is_err());
        assert!(Suite::parse("files: a.js\n").is_err());
        assert!(Suite::parse("fixture: set\nfiles: a\npassthrough: [shard_collections]\n").is_err());
    }
}
