//! The operating system's files.

#![expect(clippy::disallowed_methods, reason = "the operating system's files")]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::{File, FileLock, Files, LockError, Space};

/// Files of the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealFiles;

struct RealFile(fs::File);

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    // fdatasync also writes the length when it changed; times of access and change are not needed.
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn preallocate(&self, length: u64) -> io::Result<()> {
        let now = self.len()?;
        if now >= length {
            return Ok(());
        }
        match allocate(&self.0, now, length - now) {
            Err(error) if not_supported(&error) => self.0.set_len(length),
            result => result,
        }
    }
}

#[cfg(target_os = "linux")]
fn allocate(file: &fs::File, offset: u64, length: u64) -> io::Result<()> {
    let range = i64::try_from(offset).and_then(|offset| Ok((offset, i64::try_from(length)?)));
    let (offset, length) = range.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    loop {
        // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is passed.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, offset, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &fs::File, _offset: u64, _length: u64) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

fn not_supported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
}

impl Files for RealFiles {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(fs::File::options().read(true).write(true).open(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let path = CString::new(dir.as_os_str().as_bytes())?;
        let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: `path` ends with a zero byte, and both pointers are good for the call.
        if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it has filled the whole of it.
        let found = unsafe { found.assume_init() };
        let bytes = |blocks: u64| blocks * found.f_frsize;
        Ok(Space { total: bytes(found.f_blocks), used: bytes(found.f_blocks - found.f_bfree) })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        fs::File::open(dir)?.sync_all()
    }

    // `flock` belongs to the open file description, so a second open in the same process is refused too; `fcntl`
    // locks belong to the process and would be granted again.
    fn lock(&self, path: &Path) -> Result<FileLock, LockError> {
        let options = fs::File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = options.map_err(LockError::Io)?;
        // SAFETY: the descriptor is open; no memory is passed.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(FileLock::new(file));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock => Err(LockError::InUse(path.to_owned())),
            _ => Err(LockError::Io(error)),
        }
    }
}
