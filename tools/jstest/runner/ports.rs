//! Blocks of ports, so that tests that run at once, in this runner or in another, never meet.
//!
//! A block is a locked file in a directory that all runners of the machine share; the kernel lets go of the lock when
//! the runner ends, however it ends. Blocks lie below the ports which the kernel gives to clients.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;
/// Enough for a cluster of dozens of nodes.
const SIZE: u16 = 250;

/// Ports `low..=high`, this runner's alone as long as the value lives.
#[derive(Debug)]
pub(super) struct Ports {
    pub low: u16,
    pub high: u16,
    _lock: File,
}

impl Ports {
    pub(super) fn reserve() -> io::Result<Ports> {
        // SAFETY: geteuid cannot fail.
        let user = unsafe { libc::geteuid() };
        // Not TMPDIR, which is not the same for all runners of the machine, as ports are.
        let directory = Path::new("/tmp").join(format!("jstest-ports-{user}"));
        fs::create_dir_all(&directory)?;
        for low in (FIRST..LAST).step_by(SIZE.into()) {
            let path = directory.join(low.to_string());
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            // SAFETY: the descriptor is open for as long as `file` lives.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(Ports { low, high: low + SIZE - 1, _lock: file });
            }
        }
        Err(io::Error::other(format!("all blocks of ports between {FIRST} and {LAST} are taken")))
    }

    /// The value of `JSTEST_PORTS`.
    pub(super) fn text(&self) -> String {
        format!("{}-{}", self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::Ports;

    #[test]
    fn blocks_do_not_overlap() {
        let (a, b) = (Ports::reserve().unwrap(), Ports::reserve().unwrap());
        assert!(a.high < b.low || b.high < a.low);
    }
}
