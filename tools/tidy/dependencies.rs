//! What a crate declares it uses, and what the workspace declares some crate does.

use crate::{File, files};

/// Used without being named in a source.
const UNNAMED: &[&str] = &["libfuzzer-sys"];

/// The names in the sections of dependencies.
fn declared(manifest: &str, section: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        match line.strip_prefix('[') {
            Some(head) => inside = section(head.trim_end_matches(']')),
            None if inside && !line.starts_with('#') => {
                names
                    .extend(line.split_once('=').map(|(name, _)| name.trim().trim_end_matches(".workspace")));
            }
            None => {}
        }
    }
    names
}

/// The name in sources of the crate that a package holds.
fn crate_name(package: &str) -> String {
    package.strip_prefix("md-").map_or_else(|| package.replace('-', "_"), |n| format!("md{n}"))
}

fn names(source: &File, wanted: &str) -> bool {
    source.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|found| found == wanted)
}

#[test]
fn every_declared_dependency_is_used() {
    let manifests = files(&["src", "wire", "tools", "Cargo.toml"], "Cargo.toml");
    let mut unused = Vec::new();
    for manifest in &manifests {
        let folder = manifest.path.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let under: &[&str] = if folder.is_empty() { &["src/bin"] } else { &[folder] };
        let sources = files(under, ".rs");
        for package in declared(&manifest.text, |s| matches!(s, "dependencies" | "dev-dependencies")) {
            let name = crate_name(package);
            if !UNNAMED.contains(&package) && !sources.iter().any(|source| names(source, &name)) {
                unused.push(format!("{}: {package}", manifest.path));
            }
        }
    }
    let all: Vec<&str> = manifests
        .iter()
        .flat_map(|m| {
            declared(&m.text, |s| matches!(s, "dependencies" | "dev-dependencies" | "build-dependencies"))
        })
        .collect();
    let root = files(&["Cargo.toml"], "Cargo.toml");
    for package in declared(&root[0].text, |s| s == "workspace.dependencies") {
        if !all.contains(&package) {
            unused.push(format!("the workspace: {package}"));
        }
    }
    assert!(unused.is_empty(), "declared, and used by nothing: {unused:#?}");
}
