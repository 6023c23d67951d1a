//! One program a test has started, from its start to its exit code.
//!
//! Two threads serve a child: one reads its lines (standard output and error come through one pipe, so their order is
//! kept), one waits for its end. They are two because a grandchild may keep the pipe open after the child has gone.
//!
//! Invariant: a signal is sent only while the process has not been reaped, under the lock of the exit code; a process
//! number that the system has given to somebody else is never hit.

use super::launch::Launch;
use crate::Shared;
use parking_lot::{Condvar, Mutex};
use std::io::{BufRead, BufReader, PipeReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// The exit code of a program that could not be started.
const EXIT_NOT_STARTED: i32 = 255;

/// How long the lines of a child that has ended are waited for.
const DRAIN_SECONDS: u64 = 10;

pub struct Child {
    pub pid: i64,
    pub port: Option<u16>,
    pub name: String,
    /// The exit code, or minus the number of the signal that ended the process; none while it runs.
    exit: Mutex<Option<i32>>,
    ended: Condvar,
    drained: Mutex<bool>,
    dry: Condvar,
}

impl Child {
    /// Starts `file` as `launch` says. A file that cannot be executed makes a child that has already ended, with a line
    /// that says why, as the real shell's fork does.
    pub fn start(shared: &Arc<Shared>, launch: &Launch, file: &Path) -> Arc<Child> {
        match spawn(launch, file) {
            Ok((process, lines)) => Child::run(shared, launch, process, lines),
            Err(error) => Child::stillborn(shared, launch, file, &error),
        }
    }
    fn new(launch: &Launch, pid: i64, exit: Option<i32>) -> Arc<Child> {
        Arc::new(Child {
            pid,
            port: launch.port(),
            name: launch.name().to_string(),
            drained: Mutex::new(exit.is_some()),
            exit: Mutex::new(exit),
            ended: Condvar::new(),
            dry: Condvar::new(),
        })
    }
    fn run(
        shared: &Arc<Shared>,
        launch: &Launch,
        process: std::process::Child,
        lines: PipeReader,
    ) -> Arc<Child> {
        let pid = i64::from(process.id());
        let child = Child::new(launch, pid, None);
        if !launch.quiet {
            let args: Vec<String> = launch.args.iter().map(|arg| shortened(arg)).collect();
            shared.print_line(&format!("shell: started program (sh{pid}):  {}", args.join(" ")));
        }
        let prefix = (!launch.quiet).then(|| launch.prefix(pid));
        let (reader, owner) = (child.clone(), shared.clone());
        std::thread::spawn(move || reader.read_lines(&owner, lines, prefix.as_deref()));
        let waiter = child.clone();
        std::thread::spawn(move || waiter.await_end(process));
        child
    }
    fn stillborn(shared: &Arc<Shared>, launch: &Launch, file: &Path, error: &std::io::Error) -> Arc<Child> {
        /// Process numbers above what the system gives, so that no process is meant by them.
        static NEXT: AtomicI64 = AtomicI64::new(1 << 22);
        let pid = NEXT.fetch_add(1, Ordering::Relaxed) + 1;
        let line = format!("{}Unable to start program {}: {error}", launch.prefix(pid), file.display());
        shared.programs.captured.append(&line);
        shared.print_line(&line);
        Child::new(launch, pid, Some(EXIT_NOT_STARTED))
    }
    fn read_lines(&self, shared: &Shared, lines: PipeReader, prefix: Option<&str>) {
        let mut lines = BufReader::new(lines);
        let mut bytes = Vec::new();
        while lines.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            if let Some(prefix) = prefix {
                let text = String::from_utf8_lossy(&bytes);
                let line = format!("{prefix}{}", text.trim_end_matches(['\n', '\r']));
                shared.programs.captured.append(&line);
                shared.print_line(&line);
            }
            bytes.clear();
        }
        *self.drained.lock() = true;
        self.dry.notify_all();
    }
    fn await_end(&self, mut process: std::process::Child) {
        wait_without_reaping(process.id());
        let mut exit = self.exit.lock();
        *exit = Some(process.wait().map_or(EXIT_NOT_STARTED, exit_code));
        self.ended.notify_all();
    }
    /// The exit code, when the process has ended.
    pub fn exit_code(&self) -> Option<i32> {
        *self.exit.lock()
    }
    /// Sends a signal, unless the process has ended.
    pub fn signal(&self, signal: i32) {
        let exit = self.exit.lock();
        if exit.is_none() {
            // SAFETY: the process is a child that has not been reaped, so the number is its own.
            unsafe { libc::kill(self.pid as libc::pid_t, signal) };
        }
    }
    /// Waits for the end and for the last line; `None` when `limit` passes first.
    pub fn wait(&self, limit: Option<Duration>) -> Option<i32> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut exit = self.exit.lock();
        while exit.is_none() {
            match deadline {
                None => self.ended.wait(&mut exit),
                Some(deadline) => {
                    if self.ended.wait_until(&mut exit, deadline).timed_out() && exit.is_none() {
                        return None;
                    }
                }
            }
        }
        let code = *exit;
        drop(exit);
        self.await_lines();
        code
    }
    fn await_lines(&self) {
        let deadline = Instant::now() + Duration::from_secs(DRAIN_SECONDS);
        let mut drained = self.drained.lock();
        while !*drained && !self.dry.wait_until(&mut drained, deadline).timed_out() {}
    }
}

fn spawn(launch: &Launch, file: &Path) -> std::io::Result<(std::process::Child, PipeReader)> {
    use std::os::unix::process::CommandExt;
    let (lines, output) = std::io::pipe()?;
    let mut command = Command::new(file);
    command
        .arg0(launch.name())
        .args(launch.args.iter().skip(1))
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    // The command holds the writing ends; they must be closed here, or the reader never sees the end.
    let process = command.spawn()?;
    Ok((process, lines))
}

fn wait_without_reaping(pid: u32) {
    loop {
        // SAFETY: an all-zero siginfo is a valid one to be overwritten.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: waits for a child of this process, which nobody else reaps.
        let answer = unsafe { libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT) };
        if answer == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// An argument as one line; a script given to `--eval` would fill the screen.
fn shortened(arg: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let line = arg.replace('\n', " ");
    match line.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
