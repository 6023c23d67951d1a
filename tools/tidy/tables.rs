//! Tables tell the truth: what a row promises somebody does, and what somebody asks for has a row.

use crate::{File, after, files, quoted};
use node::{failpoints, parameters};

/// Sources of the servers that are neither tests nor the table itself.
fn readers(table: &str) -> Vec<File> {
    let mut all = files(&["src"], ".rs");
    all.retain(|file| !file.is_test() && file.path != table);
    all
}

/// Whether some reader is handed this name.
fn is_handed_over(readers: &[File], name: &str) -> bool {
    let name = format!("\"{name}\"");
    // `"name": value` is a field of a reply.
    readers.iter().any(|file| after(file.code(), &name).any(|rest| !rest.starts_with(':')))
}

/// These act in the table's own file, where they are set.
const ACT_WHEN_SET: &[&str] = &["requireApiVersion"];

#[test]
fn every_effective_parameter_has_a_reader() {
    let readers = readers("src/node/parameters.rs");
    let unread: Vec<&str> = parameters::TABLE
        .iter()
        .filter(|p| p.effective && !ACT_WHEN_SET.contains(&p.name) && !is_handed_over(&readers, p.name))
        .map(|p| p.name)
        .collect();
    assert!(unread.is_empty(), "marked effective, and read by nothing: {unread:?}");
}

#[test]
fn every_reader_of_a_parameter_reads_one_that_is_effective() {
    let mut wrong = Vec::new();
    for file in readers("src/node/parameters.rs") {
        let text: String = file.code().split_whitespace().collect();
        for place in ["parameters.", "parameters()."] {
            for rest in after(&text, place) {
                let call = ["int(", "bool(", "text(", "get("].iter().find_map(|call| rest.strip_prefix(call));
                let Some(name) = call.and_then(quoted) else { continue };
                if !parameters::find(name).is_some_and(|(_, row)| row.effective) {
                    wrong.push(format!("{}: {name}", file.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "read, and not marked effective: {wrong:#?}");
}

#[test]
fn every_fail_point_has_a_place() {
    let readers = readers("src/node/failpoints.rs");
    let made_up: Vec<&&str> = failpoints::NAMES
        .iter()
        .filter(|name| {
            // The steps of a migration are passed by number.
            let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let stem = name.strip_suffix("Durable").unwrap_or(name);
            let parts = ["Decision", "CommitDecision", "AbortDecision"]
                .iter()
                .filter_map(|end| stem.strip_suffix(end));
            let begins = |prefix: &str| readers.iter().any(|f| f.code().contains(&format!("\"{prefix}")));
            **name != "dummy"
                && !is_handed_over(&readers, name)
                && !begins(family)
                && !parts.into_iter().any(begins)
        })
        .collect();
    assert!(made_up.is_empty(), "may be set, and nothing passes them: {made_up:?}");
}

#[test]
fn every_place_passes_a_known_fail_point() {
    const CALLS: &[&str] = &["failpoints.", "failpoints()."];
    const METHODS: &[&str] = &[
        "should(",
        "should_with(",
        "is_set(",
        "pause_while_set(",
        "fail_with_code(&context.operation,",
        "fail_with_code(op,",
    ];
    let mut unknown = Vec::new();
    for file in readers("src/node/failpoints.rs") {
        let text: String = file.code().split_whitespace().collect();
        for rest in CALLS.iter().flat_map(|call| after(&text, call)) {
            let Some(name) = METHODS.iter().find_map(|m| rest.strip_prefix(m)).and_then(quoted) else {
                continue;
            };
            if !failpoints::is_known(name) {
                unknown.push(format!("{}: {name}", file.path));
            }
        }
    }
    assert!(unknown.is_empty(), "passed, and never on: {unknown:#?}");
}
