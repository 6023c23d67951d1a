//! Files that live no longer than the operation that writes them: what stages of pipelines and sorts spill.
//!
//! They stand in `_tmp` in the data directory. A file loses its name as soon as it is open, so that nothing is left of
//! it once its handle is dropped, whatever becomes of the process; and the directory is emptied at every start.

use document::{Error, Result, codes};
use query::pipeline::spill;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use storage::files::{self, Files};

/// Name of the directory. DO NOT CHANGE: others expect it, and skip it in backups.
const DIRECTORY: &str = "_tmp";

/// The directory, where stages and sorts spill.
pub struct TemporaryFiles {
    files: Arc<dyn Files>,
    dir: PathBuf,
    written: Arc<Written>,
}

/// What was written since the start.
#[derive(Default)]
struct Written {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl std::fmt::Debug for TemporaryFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporaryFiles").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl TemporaryFiles {
    /// Empties the directory. A node that cannot do so can still spill, and says so when it does.
    pub fn open(files: Arc<dyn Files>, data: &Path) -> TemporaryFiles {
        let dir = data.join(DIRECTORY);
        let _ = files.remove_dir_all(&dir);
        TemporaryFiles { files, dir, written: Arc::default() }
    }
    /// Files made and bytes written since the start.
    pub fn totals(&self) -> (u64, u64) {
        (self.written.files.load(Ordering::Relaxed), self.written.bytes.load(Ordering::Relaxed))
    }
}

fn failed(e: std::io::Error) -> Error {
    let code = match e.kind() {
        std::io::ErrorKind::StorageFull => codes::OUT_OF_DISK_SPACE,
        _ => codes::INTERNAL_ERROR,
    };
    Error::new(code, format!("a temporary file failed: {e}"))
}

impl spill::Space for TemporaryFiles {
    fn file(&self) -> Result<Box<dyn spill::File>> {
        let TemporaryFiles { files, dir, written } = self;
        files.create_dir_all(dir).map_err(failed)?;
        let path = dir.join(format!("extsort.{}", written.files.fetch_add(1, Ordering::Relaxed)));
        let file = files.create(&path).map_err(failed)?;
        files.remove(&path).map_err(failed)?;
        Ok(Box::new(Temporary { file, length: 0, written: written.clone() }))
    }
}

struct Temporary {
    file: Arc<dyn files::File>,
    length: u64,
    written: Arc<Written>,
}

impl spill::File for Temporary {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, self.length).map_err(failed)?;
        self.length += bytes.len() as u64;
        self.written.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
    fn read(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(out, at).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spill::Space;

    #[test]
    fn a_file_has_no_name_while_it_is_used_and_what_was_left_is_removed_at_the_start() {
        let data = tempfile::tempdir().unwrap();
        let left = data.path().join(DIRECTORY).join("extsort.7");
        std::fs::create_dir_all(left.parent().unwrap()).unwrap();
        std::fs::write(&left, b"old").unwrap();
        let files: Arc<dyn Files> = Arc::new(files::RealFiles);
        let temporary = TemporaryFiles::open(files, data.path());
        assert!(!left.exists());
        let mut file = temporary.file().unwrap();
        file.append(b"hello ").unwrap();
        file.append(b"there").unwrap();
        let mut out = [0; 5];
        file.read(6, &mut out).unwrap();
        assert_eq!(&out, b"there");
        assert_eq!(std::fs::read_dir(data.path().join(DIRECTORY)).unwrap().count(), 0);
        assert_eq!(temporary.totals(), (1, 11));
    }
}
