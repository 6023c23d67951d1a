//! Where scripts and modules are.

use super::embedded;
use crate::Shell;
use std::path::{Path, PathBuf};

pub(super) enum Found {
    /// For a module the real path, so that two ways to name a file are one module.
    File(PathBuf),
    /// The name of a module of this program.
    Embedded(&'static str),
}

/// The file that `load(path)` means.
pub(super) fn script(shell: &Shell, path: &str) -> Option<Found> {
    // As given first: stacks then show the path as the test wrote it.
    if Path::new(path).exists() {
        return Some(Found::File(path.into()));
    }
    under_roots(shell, path)
}

/// The module that `import "name"` in the module `base` means.
pub(super) fn module(shell: &Shell, base: &str, name: &str) -> Option<Found> {
    if let Some(name) = name.strip_prefix(embedded::SCHEME) {
        return embedded::find(name).map(|(name, _)| Found::Embedded(name));
    }
    let name = name.strip_prefix("file://").unwrap_or(name);
    if name.starts_with("./") || name.starts_with("../") {
        return beside(base, name);
    }
    let found = under_roots(shell, name).or_else(|| real_file(Path::new(name)));
    match found {
        Some(Found::File(path)) => real_file(&path),
        other => other,
    }
}

fn beside(base: &str, name: &str) -> Option<Found> {
    if base.starts_with(embedded::SCHEME) {
        // Embedded modules stand in one directory.
        return embedded::find(name.rsplit('/').next()?).map(|(name, _)| Found::Embedded(name));
    }
    real_file(&Path::new(base).parent().unwrap_or(Path::new("")).join(name))
}

fn under_roots(shell: &Shell, name: &str) -> Option<Found> {
    let roots = [Some(&shell.options.root), shell.options.fallback_root.as_ref()];
    let mut paths = roots.into_iter().flatten().map(|root| root.join(name));
    match paths.find(|path| path.exists()) {
        Some(path) => Some(Found::File(path)),
        None => embedded::find(name).map(|(name, _)| Found::Embedded(name)),
    }
}

fn real_file(path: &Path) -> Option<Found> {
    let path = path.canonicalize().ok()?;
    path.is_file().then_some(Found::File(path))
}

/// The scripts of a directory, by name.
pub(super) fn scripts_of(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut scripts: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "js"))
        .collect();
    scripts.sort();
    scripts
}
