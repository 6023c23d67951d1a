//! Files that live in memory and are gone with the process: a node that was started without a data directory.
//!
//! A file is a list of blocks, so that growing it never copies what it holds and readers wait only for a block's copy.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::{File, FileLock, Files, LockError};

const BLOCK: usize = 64 << 10;

/// A file system in memory; clones share it.
#[derive(Clone, Default)]
pub struct MemoryFiles {
    names: Arc<Mutex<Names>>,
}

#[derive(Default)]
struct Names {
    files: BTreeMap<PathBuf, Arc<MemoryFile>>,
    dirs: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct MemoryFile {
    content: RwLock<Content>,
}

#[derive(Default)]
struct Content {
    length: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Content {
    fn each_block(length: usize, offset: u64, mut f: impl FnMut(u64, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let within = (at % BLOCK as u64) as usize;
            let n = (BLOCK - within).min(length - done);
            f(at / BLOCK as u64, within, done..done + n);
            done += n;
        }
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.read();
        let length = content.length.saturating_sub(offset).min(buffer.len() as u64) as usize;
        Content::each_block(length, offset, |block, within, range| {
            let n = range.len();
            match content.blocks.get(&block) {
                Some(bytes) => buffer[range].copy_from_slice(&bytes[within..within + n]),
                None => buffer[range].fill(0),
            }
        });
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut content = self.content.write();
        Content::each_block(bytes.len(), offset, |block, within, range| {
            let n = range.len();
            let block = content.blocks.entry(block).or_insert_with(|| vec![0; BLOCK].into_boxed_slice());
            block[within..within + n].copy_from_slice(&bytes[range]);
        });
        content.length = content.length.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.read().length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut content = self.content.write();
        content.length = length;
        content.blocks.retain(|&block, _| block * (BLOCK as u64) < length);
        let within = (length % BLOCK as u64) as usize;
        if let Some(bytes) = content.blocks.get_mut(&(length / BLOCK as u64)) {
            bytes[within..].fill(0);
        }
        Ok(())
    }

    fn preallocate(&self, length: u64) -> io::Result<()> {
        let mut content = self.content.write();
        content.length = content.length.max(length);
        Ok(())
    }
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
}

impl Files for MemoryFiles {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let names = self.names.lock();
        let file = names.files.get(path).ok_or_else(|| not_found(path))?;
        Ok(Arc::clone(file) as Arc<dyn File>)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = Arc::new(MemoryFile::default());
        self.names.lock().files.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        names.dirs.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        let file = names.files.remove(from).ok_or_else(|| not_found(from))?;
        names.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.names.lock().files.remove(path).map(drop).ok_or_else(|| not_found(path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        names.files.retain(|name, _| !name.starts_with(path));
        names.dirs.retain(|name| !name.starts_with(path));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.names.lock();
        let all = names.files.keys().chain(names.dirs.iter());
        let children = all.filter(|path| path.parent() == Some(dir)).filter_map(|path| path.file_name());
        let unique: BTreeSet<String> = children.map(|name| name.to_string_lossy().into_owned()).collect();
        Ok(unique.into_iter().collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let names = self.names.lock();
        Ok(names.files.contains_key(path) || names.dirs.contains(path))
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<FileLock, LockError> {
        if !self.names.lock().locked.insert(path.to_owned()) {
            return Err(LockError::InUse(path.to_owned()));
        }
        Ok(FileLock::new(MemoryLock { names: Arc::clone(&self.names), path: path.to_owned() }))
    }
}

struct MemoryLock {
    names: Arc<Mutex<Names>>,
    path: PathBuf,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.names.lock().locked.remove(&self.path);
    }
}
