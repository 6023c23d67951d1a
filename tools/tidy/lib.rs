//! The rules of the house that no compiler knows, as tests over the repository's own text.
//!
//! ```text
//! shape         every file has a head comment, no function is longer than 80 lines
//! tables        a parameter that is marked effective has a reader, a reader has a row; the same of fail points and their places
//! dependencies  a declared dependency is used by the crate that declares it
//! names         parameters, fail points and files that pages, comments and scripts name exist
//! ```
//! They read text, not syntax: the workspace is formatted by rustfmt, so a function ends at the first closing brace of its own
//! indentation. A rule that reads too little is shown to fail by a test of its own on a made-up file.
#![cfg(test)]

mod dependencies;
mod names;
mod shape;
mod tables;

use std::path::{Path, PathBuf};

/// A file of the repository: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    /// Whether it holds tests alone.
    fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "testing.rs"))
    }
    /// The part of a source file before its own tests.
    fn code(&self) -> &str {
        self.text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file under these folders (or these files) whose name ends like that. What is built or fetched is left out.
fn files(under: &[&str], ending: &str) -> Vec<File> {
    let mut out = Vec::new();
    let mut left: Vec<PathBuf> = under.iter().map(|name| root().join(name)).collect();
    while let Some(path) = left.pop() {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if matches!(name, "target" | "node_modules" | ".git" | ".cache" | "corpus") {
            continue;
        }
        if path.is_dir() {
            left.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        } else if name.ends_with(ending) {
            let text = std::fs::read_to_string(&path).expect("text");
            let path = path.strip_prefix(root()).expect("in the repository").display().to_string();
            out.push(File { path, text });
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!out.is_empty(), "{under:?} holds nothing that ends in {ending}");
    out
}

/// Every Rust file.
fn sources() -> Vec<File> {
    files(&["src", "wire", "tools", "tests"], ".rs")
}

/// The quoted string that this text begins with, if it begins with one.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split(quote).next()
}

/// The letters, digits and underscores that this text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// What follows each occurrence.
fn after<'a>(text: &'a str, wanted: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(wanted).map(move |(at, found)| &text[at + found.len()..])
}
