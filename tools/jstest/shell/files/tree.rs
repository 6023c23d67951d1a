//! Whole directories.

use std::io;
use std::path::Path;

/// Removes a file or a directory with all in it; false when there was nothing.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(false) };
    if metadata.is_dir() {
        std::fs::remove_dir_all(path)?;
    } else {
        std::fs::remove_file(path)?;
    }
    Ok(true)
}

/// Copies a directory with all in it that `wanted` says yes to.
pub(super) fn copy(from: &Path, to: &Path, wanted: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        match path.is_dir() {
            _ if !wanted(&path) => {}
            true => copy(&path, &target, wanted)?,
            false => drop(std::fs::copy(&path, &target)?),
        }
    }
    Ok(())
}
