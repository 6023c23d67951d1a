//! A child process in a session of its own, and the wait for it.

use super::interrupt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a wait looks at anything but the child itself.
const LOOK: Duration = Duration::from_millis(100);
/// More output than this ends a test: it fills the disk and nobody reads it.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;

/// How a wait ended.
#[derive(Debug)]
pub(super) enum Ended {
    Exited(ExitStatus),
    TimedOut,
    Interrupted,
    /// It has written more than [`OUTPUT_BYTES_MAX`].
    Flooded,
}

/// Starts `command` in a new session with its output in `output`. It dies with this process, and with the thread that
/// calls this.
pub(super) fn spawn(command: &mut Command, output: &Path) -> io::Result<Child> {
    let file = File::options().create(true).append(true).open(output)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let become_session = || {
        // SAFETY: both are system calls without memory; errors leave the child where it was.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        Ok(())
    };
    // SAFETY: the closure makes only async-signal-safe calls.
    unsafe { command.pre_exec(become_session) };
    command.spawn()
}

/// Waits for a child up to `deadline`, without delay once it exits.
pub(super) fn wait(child: &mut Child, deadline: Instant, output: &Path) -> io::Result<Ended> {
    let exit = exit_descriptor(child);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Exited(status));
        }
        if interrupt::noticed_any() {
            return Ok(Ended::Interrupted);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Ended::TimedOut);
        }
        if output.metadata().is_ok_and(|m| m.len() > OUTPUT_BYTES_MAX) {
            return Ok(Ended::Flooded);
        }
        until_exit(exit.as_ref(), left.min(LOOK));
    }
}

/// A descriptor that becomes readable when the child exits; `None` where the kernel has no such thing.
fn exit_descriptor(child: &Child) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes a pid and flags; the child is not reaped yet, so the pid is its own.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id() as libc::pid_t, 0) };
    // SAFETY: a descriptor that was just returned is owned by nobody else.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn until_exit(exit: Option<&OwnedFd>, patience: Duration) {
    let Some(exit) = exit else { return std::thread::sleep(patience.min(Duration::from_millis(5))) };
    let mut poll = libc::pollfd { fd: exit.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd. Being interrupted by a signal only makes the caller look sooner.
    unsafe { libc::poll(&mut poll, 1, patience.as_millis().max(1) as libc::c_int) };
}
