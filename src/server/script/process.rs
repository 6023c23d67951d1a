//! One script process and its two pipes. Neither pipe blocks: a process that stops reading or writing is noticed like one
//! that computes for ever.

use document::{DocBuf, Error};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Handle;

/// Bytes read at a time.
const BLOCK_BYTES: usize = 64 << 10;

pub(super) struct Process {
    /// `None` only while it is dropped.
    child: Option<Child>,
    input: ChildStdin,
    output: ChildStdout,
    /// Read and not yet taken.
    arrived: Vec<u8>,
}

/// Why there is no reply.
pub(super) enum Failed {
    /// The one who waits was asked and gave up.
    Asked(Error),
    Pipe(io::Error),
}

impl From<io::Error> for Failed {
    fn from(e: io::Error) -> Failed {
        Failed::Pipe(e)
    }
}

impl Process {
    /// Starts this program again, with nothing of its own but the two pipes.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start(version: &str) -> io::Result<Process> {
        let program = match cfg!(target_os = "linux") {
            // Also right when the file has been replaced since.
            true => "/proc/self/exe".into(),
            false => std::env::current_exe()?,
        };
        let mut child = Command::new(program)
            .arg0("tessera")
            .args([script::child::ROLE, version])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        for pipe in [input.as_raw_fd(), output.as_raw_fd()] {
            unblock(pipe)?;
        }
        Ok(Process { child: Some(child), input, output, arrived: Vec::new() })
    }
    /// Sends a short message that has no reply.
    ///
    /// # Errors
    /// The pipe's; one that is full counts as broken.
    pub(super) fn tell(&mut self, message: &[u8]) -> io::Result<()> {
        self.input.write_all(message)
    }
    /// Sends a message and waits for its reply, asking after each `look_every` whether to go on.
    ///
    /// # Errors
    /// What `go_on` says, and the pipes' errors.
    pub(super) fn exchange(
        &mut self,
        message: &[u8],
        look_every: Duration,
        mut go_on: impl FnMut() -> document::Result<()>,
    ) -> Result<DocBuf, Failed> {
        let mut unsent = message;
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            let mut waits = true;
            if !unsent.is_empty()
                && let Some(n) = unless_waiting(self.input.write(unsent))?
            {
                (unsent, waits) = (&unsent[n..], false);
            }
            match unless_waiting(self.output.read(&mut block))? {
                Some(0) => return Err(Failed::Pipe(ErrorKind::UnexpectedEof.into())),
                Some(n) => {
                    self.arrived.extend_from_slice(&block[..n]);
                    waits = false;
                }
                None => {}
            }
            if let Some(reply) = script::message::take(&mut self.arrived)? {
                return Ok(reply);
            }
            if waits && !self.wait(!unsent.is_empty(), look_every)? {
                go_on().map_err(Failed::Asked)?;
            }
        }
    }
    /// Whether something can be read, or written where that is wanted, before the time is over.
    fn wait(&self, to_write: bool, time: Duration) -> io::Result<bool> {
        let watched = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
        let writes = if to_write { libc::POLLOUT } else { 0 };
        let mut pipes = [
            watched(self.output.as_raw_fd(), libc::POLLIN),
            watched(if to_write { self.input.as_raw_fd() } else { -1 }, writes),
        ];
        // SAFETY: the array outlives the call and its length is the one given.
        let ready =
            unsafe { libc::poll(pipes.as_mut_ptr(), pipes.len() as libc::nfds_t, time.as_millis() as i32) };
        match ready {
            n if n >= 0 => Ok(n > 0),
            _ => match io::Error::last_os_error() {
                e if e.kind() == ErrorKind::Interrupted => Ok(true),
                e => Err(e),
            },
        }
    }
}

impl Drop for Process {
    /// Ends the process. The system takes its time over one with much memory, so it is not waited for on a thread that serves others.
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // It may have ended by itself.
        let _ = child.kill();
        let mut wait = move || drop(child.wait());
        match Handle::try_current() {
            Ok(_) => drop(runtime::blocking(wait)),
            Err(_) => wait(),
        }
    }
}

fn unless_waiting(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(n) => Ok(Some(n)),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(e),
    }
}

fn unblock(pipe: RawFd) -> io::Result<()> {
    // SAFETY: flags of a pipe that this process has just opened.
    let done = unsafe {
        match libc::fcntl(pipe, libc::F_GETFL) {
            -1 => -1,
            flags => libc::fcntl(pipe, libc::F_SETFL, flags | libc::O_NONBLOCK),
        }
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
