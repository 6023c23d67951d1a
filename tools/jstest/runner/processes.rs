//! Processes of a test, found by the mark that they inherit in their environment, or by their session.
//!
//! A test is one child in a session of its own with `JSTEST_MARK` set. Whatever it starts inherits both; a program that
//! makes itself a daemon leaves the session and keeps the mark.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Rounds of looking and killing before giving up on processes that fork faster than they are killed.
const ROUNDS_MAX: usize = 100;

/// Which processes are meant.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// The whole value of `JSTEST_MARK`, or its beginning when `whole` is not set.
    pub value: String,
    pub whole: bool,
    /// A session whose processes are meant too.
    pub session: Option<i32>,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pub pid: i32,
    pub arguments: Vec<String>,
}

impl Process {
    /// The command line, cut to a length fit for a line of a report.
    pub(super) fn command(&self) -> String {
        let words = self.arguments.iter().flat_map(|a| a.split_whitespace()).collect::<Vec<_>>().join(" ");
        match words.char_indices().nth(300) {
            Some((at, _)) => format!("{}... (pid {})", &words[..at], self.pid),
            None => format!("{words} (pid {})", self.pid),
        }
    }
    /// The value of an option, given as `--name value` or `--name=value`.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix(name) {
                Some("") => return arguments.next().map(String::as_str),
                Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
                _ => {}
            }
        }
        None
    }
}

impl Mark {
    /// All living processes that carry it, except this one.
    pub(super) fn processes(&self) -> Vec<Process> {
        let own = std::process::id() as i32;
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        let found = pids.filter(|&pid| pid != own && self.is_on(pid));
        found.map(|pid| Process { pid, arguments: arguments(pid) }).collect()
    }

    fn is_on(&self, pid: i32) -> bool {
        let in_session = self.session.is_some() && living_session(pid) == self.session;
        in_session || fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| self.is_in(&environ))
    }

    fn is_in(&self, environ: &[u8]) -> bool {
        let values = environ.split(|&b| b == 0).filter_map(|v| v.strip_prefix(b"JSTEST_MARK="));
        let mark = self.value.as_bytes();
        values.into_iter().any(|v| if self.whole { v == mark } else { v.starts_with(mark) })
    }

    /// Kills whatever carries the mark until nothing does. Returns what was found in the first round.
    pub(super) fn kill_all(&self) -> Vec<Process> {
        let first = self.processes();
        let mut found = first.clone();
        for _ in 0..ROUNDS_MAX {
            if found.is_empty() {
                break;
            }
            for process in &found {
                // SAFETY: kill has no preconditions; the pid was seen to carry the mark a moment ago.
                unsafe { libc::kill(process.pid, libc::SIGKILL) };
            }
            std::thread::sleep(Duration::from_millis(5));
            found = self.processes();
        }
        first
    }
}

fn arguments(pid: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let parts = line.split(|&b| b == 0).filter(|part| !part.is_empty());
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// The session of a process that is no zombie.
fn living_session(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the fields after the last one are: state, parent, group, session.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(2)?.parse().ok()
}

/// The TCP ports that a process listens on.
pub(super) fn listening_ports(pid: i32) -> Vec<u16> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    let links = entries.filter_map(|e| fs::read_link(e.path()).ok());
    let inodes: Vec<String> = links.filter_map(|link| socket_inode(&link)).collect();
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let mut ports: Vec<u16> =
        tables.iter().flat_map(|t| t.lines().skip(1)).filter_map(|line| listener(line, &inodes)).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

fn socket_inode(link: &Path) -> Option<String> {
    Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_string())
}

/// The port of a line of /proc/net/tcp: `sl local remote state ... inode`, where state 0A is LISTEN.
fn listener(line: &str, inodes: &[String]) -> Option<u16> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let listens = *state == "0A" && inodes.iter().any(|i| i == inode);
    listens.then(|| u16::from_str_radix(local.rsplit(':').next()?, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn mark(value: &str, whole: bool) -> Mark {
        Mark { value: value.to_string(), whole, session: None }
    }

    #[test]
    fn marked_processes_are_found_and_killed_and_others_are_not() {
        let value = format!("unit-{}.7", std::process::id());
        let mut ours = Command::new("sleep").arg("60").env("JSTEST_MARK", &value).spawn().unwrap();
        let other = format!("{value}0");
        let mut others = Command::new("sleep").arg("60").env("JSTEST_MARK", other).spawn().unwrap();
        // A process that has just begun shows no environment yet.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while mark(&value, false).processes().len() < 2 && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(mark(&value, false).processes().len(), 2);
        let found = mark(&value, true).processes();
        assert_eq!(found.iter().map(|p| p.pid).collect::<Vec<_>>(), [ours.id() as i32]);
        assert_eq!(mark(&value, true).kill_all().len(), 1);
        assert!(!ours.wait().unwrap().success());
        assert!(others.try_wait().unwrap().is_none());
        others.kill().unwrap();
        others.wait().unwrap();
    }

    #[test]
    fn a_process_that_dropped_its_environment_is_found_by_its_session() {
        let mut command = Command::new("sleep");
        let become_session = || {
            // SAFETY: setsid is a system call without memory.
            unsafe { libc::setsid() };
            Ok(())
        };
        // SAFETY: setsid is safe to call between fork and exec.
        unsafe { command.arg("60").env_clear().pre_exec(become_session) };
        let mut child = command.spawn().unwrap();
        let session = Some(child.id() as i32);
        let mark = Mark { value: "no such mark".into(), whole: true, session };
        assert_eq!(mark.kill_all().len(), 1);
        child.wait().unwrap();
        assert!(mark.processes().is_empty());
    }

    #[test]
    fn the_ports_of_a_process_are_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening_ports(std::process::id() as i32).contains(&port));
    }

    #[test]
    fn options_are_read_in_both_spellings() {
        let arguments = ["mongod", "--port", "7", "--logpath=/x"].map(String::from).to_vec();
        let process = Process { pid: 1, arguments };
        assert_eq!(process.option("--port"), Some("7"));
        assert_eq!(process.option("--logpath"), Some("/x"));
        assert_eq!(process.option("--dbpath"), None);
    }
}
