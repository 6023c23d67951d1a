//! What a crate declares it uses, and what the workspace declares some crate does.

use crate::files;

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

/// Whether a source says this crate's name as the head of a path, or imports the crate; a field or a variable may be called alike.
fn names(source: &str, wanted: &str) -> bool {
    source.match_indices(wanted).any(|(at, _)| {
        let (before, after) = (&source[..at], &source[at + wanted.len()..]);
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '>');
        let begins = !before.strip_suffix("::").unwrap_or(before).ends_with(inside);
        begins && (after.starts_with("::") || before.ends_with("use ") && after.starts_with([';', ' ']))
    })
}

#[test]
fn a_crate_is_used_where_a_path_begins_with_its_name() {
    for (source, used) in [
        ("let key = hmac::Hmac::new();", true),
        ("use hmac as mac;", true),
        ("let key = ::hmac::Hmac::new();", true),
        ("let hmac = 1;", false),
        ("crate::hmac::sum()", false),
        ("old_hmac::sum()", false),
        ("hmac_sum::of()", false),
    ] {
        assert_eq!(names(source, "hmac"), used, "{source}");
    }
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
            if !UNNAMED.contains(&package) && !sources.iter().any(|source| names(&source.text, &name)) {
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
