//! Where lines go: standard output, a file (which can be rotated), syslog, or nowhere.

#![expect(clippy::disallowed_methods, reason = "log files are no data")]

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the options ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Stdout,
    /// A path (which may be a pipe or terminal), and whether to append to what is there.
    File {
        path: PathBuf,
        append: bool,
    },
    Syslog,
    Nowhere,
}

pub(super) enum Sink {
    Stdout,
    File { path: PathBuf, file: File },
    Syslog(std::os::unix::net::UnixDatagram),
    Nowhere,
}

impl Sink {
    pub(super) fn open(target: Target) -> io::Result<Sink> {
        Ok(match target {
            Target::Stdout => Sink::Stdout,
            Target::Nowhere => Sink::Nowhere,
            Target::Syslog => {
                let socket = std::os::unix::net::UnixDatagram::unbound()?;
                // Without a syslog daemon (containers) lines go to standard output, where a launcher waits for them.
                match socket.connect("/dev/log") {
                    Ok(()) => Sink::Syslog(socket),
                    Err(_) => Sink::Stdout,
                }
            }
            Target::File { path, append } => {
                // Without --logappend the old file is kept aside, as the real server does.
                if !append && is_regular(&path) {
                    std::fs::rename(&path, aside(&path, super::now_millis()))?;
                }
                let file = open_append(&path)?;
                Sink::File { path, file }
            }
        })
    }
    pub(super) fn write_line(&mut self, line: &str) -> io::Result<()> {
        match self {
            Sink::Nowhere => Ok(()),
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(line.as_bytes())?;
                out.write_all(b"\n")?;
                out.flush()
            }
            // One write a line: another process appending to the same file cannot cut it.
            Sink::File { file, .. } => file.write_all(format!("{line}\n").as_bytes()),
            Sink::Syslog(socket) => socket.send(format!("<14>mongod: {line}").as_bytes()).map(|_| ()),
        }
    }
    pub(super) fn rotate(&mut self, rename: bool, now_millis: i64) -> io::Result<()> {
        let Sink::File { path, file } = self else { return Ok(()) };
        if !is_regular(path) {
            return Ok(());
        }
        if rename {
            std::fs::rename(&*path, aside(path, now_millis))?;
        }
        *file = open_append(path)?;
        Ok(())
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn is_regular(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file())
}

/// `mongod.log.2026-11-20T05-00-00`, with a further number while the name is taken.
fn aside(path: &Path, now_millis: i64) -> PathBuf {
    let date = document::extended_json::iso_date(now_millis)[..19].replace(':', "-");
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{date}"));
    let mut at = PathBuf::from(&name);
    let mut n = 1;
    while at.exists() {
        let mut numbered = name.clone();
        numbered.push(format!("-{n}"));
        at = numbered.into();
        n += 1;
    }
    at
}
