//! The node's log: one JSON object a line, with the real server's ids, which launchers match on.
//!
//! ```text
//! {"t":{"$date":"2026-11-20T05:00:00.000+00:00"},"s":"I",  "c":"NETWORK",  "id":23016,   "ctx":"listener","msg":"...","attr":{...}}
//! ```
//!
//! Every line is flushed when written: a launcher reads standard output and waits for "Waiting for connections".
//! Each node has its own [`Logger`]; under `tessera up` each writes into its own directory. Two rings keep the last
//! lines for `getLog`.

mod sink;
#[cfg(test)]
mod tests;

pub use sink::Target;

use document::Document;
use document::extended_json::{iso_date, write_logged, write_text};
use parking_lot::Mutex;
use sink::Sink;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// 1 to 5; shown when the verbosity is at least that.
    Debug(u8),
    Info,
    Warning,
    Error,
    Fatal,
}

impl Severity {
    fn letter(self) -> &'static str {
        match self {
            Severity::Debug(1) => "D1",
            Severity::Debug(2) => "D2",
            Severity::Debug(3) => "D3",
            Severity::Debug(4) => "D4",
            Severity::Debug(_) => "D5",
            Severity::Info => "I",
            Severity::Warning => "W",
            Severity::Error => "E",
            Severity::Fatal => "F",
        }
    }
}

/// Lines kept for `getLog: "global"`, as many as the real server keeps.
const RING_LINES: usize = 1024;
/// A longer line is kept in the ring without its attributes, so that `getLog` stays below the reply limit.
const RING_LINE_BYTES: usize = 10_000;

#[derive(Default)]
struct Ring {
    lines: VecDeque<String>,
    total: i64,
}

impl Ring {
    fn push(&mut self, line: &str) {
        if self.lines.len() == RING_LINES {
            self.lines.pop_front();
        }
        if line.len() <= RING_LINE_BYTES {
            self.lines.push_back(line.to_string());
        }
        self.total += 1;
    }
}

/// Writes lines to one target and keeps the rings.
pub struct Logger {
    sink: Mutex<Sink>,
    global: Mutex<Ring>,
    startup_warnings: Mutex<Ring>,
    verbosity: AtomicI32,
    quiet: std::sync::atomic::AtomicBool,
    /// Lines that could not be written to the target.
    lost: AtomicU64,
}

impl Logger {
    pub fn new(target: Target) -> io::Result<Logger> {
        Ok(Logger {
            sink: Mutex::new(Sink::open(target)?),
            global: Mutex::default(),
            startup_warnings: Mutex::default(),
            verbosity: AtomicI32::new(0),
            quiet: false.into(),
            lost: AtomicU64::new(0),
        })
    }
    /// A logger that only fills its rings; for tests and embedded nodes without a directory.
    pub fn silent() -> Logger {
        Logger {
            sink: Mutex::new(Sink::Nowhere),
            global: Mutex::default(),
            startup_warnings: Mutex::default(),
            verbosity: AtomicI32::new(0),
            quiet: true.into(),
            lost: AtomicU64::new(0),
        }
    }
    pub fn set_verbosity(&self, level: i32) {
        self.verbosity.store(level, Ordering::Relaxed);
    }
    pub fn verbosity(&self) -> i32 {
        self.verbosity.load(Ordering::Relaxed)
    }
    /// Quiet: connections accepted and ended are not logged.
    pub fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }
    pub fn enabled(&self, severity: Severity) -> bool {
        match severity {
            Severity::Debug(level) => i32::from(level) <= self.verbosity(),
            _ => true,
        }
    }

    pub fn line(&self, severity: Severity, component: &str, id: i32, ctx: &str, msg: &str, attr: &Document) {
        if self.enabled(severity) {
            let line = format_line(now_millis(), severity, component, id, ctx, msg, attr, &[]);
            self.write(&line, false);
        }
    }
    pub fn info(&self, component: &str, id: i32, ctx: &str, msg: &str, attr: Document) {
        self.line(Severity::Info, component, id, ctx, msg, &attr);
    }
    pub fn warning(&self, component: &str, id: i32, ctx: &str, msg: &str, attr: Document) {
        self.line(Severity::Warning, component, id, ctx, msg, &attr);
    }
    pub fn error(&self, component: &str, id: i32, ctx: &str, msg: &str, attr: Document) {
        self.line(Severity::Error, component, id, ctx, msg, &attr);
    }
    pub fn fatal(&self, component: &str, id: i32, ctx: &str, msg: &str, attr: Document) {
        self.line(Severity::Fatal, component, id, ctx, msg, &attr);
    }
    pub fn debug(
        &self,
        level: u8,
        component: &str,
        id: i32,
        ctx: &str,
        msg: &str,
        attr: impl FnOnce() -> Document,
    ) {
        let severity = Severity::Debug(level);
        if self.enabled(severity) {
            self.line(severity, component, id, ctx, msg, &attr());
        }
    }
    /// A warning that shells show at connect (`getLog: "startupWarnings"`).
    pub fn startup_warning(&self, component: &str, id: i32, msg: &str, attr: Document) {
        let tags = ["startupWarnings"];
        let line =
            format_line(now_millis(), Severity::Warning, component, id, "initandlisten", msg, &attr, &tags);
        self.write(&line, true);
    }

    fn write(&self, line: &str, startup_warning: bool) {
        self.global.lock().push(line);
        if startup_warning {
            self.startup_warnings.lock().push(line);
        }
        // A full disk must not stop the server; the count is shown in serverStatus.
        if self.sink.lock().write_line(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Renames the current file aside (or reopens it) and goes on in a new one. Not possible for standard output.
    pub fn rotate(&self, rename: bool) -> io::Result<()> {
        self.sink.lock().rotate(rename, now_millis())
    }
    /// The lines of a ring, oldest first, and how many were ever written to it; `None` for an unknown name.
    pub fn ring(&self, name: &str) -> Option<(Vec<String>, i64)> {
        let ring = match name {
            "global" => self.global.lock(),
            "startupWarnings" => self.startup_warnings.lock(),
            _ => return None,
        };
        Some((ring.lines.iter().cloned().collect(), ring.total))
    }
    pub fn clear_ring(&self, name: &str) -> bool {
        match name {
            "global" => self.global.lock().lines.clear(),
            "startupWarnings" => self.startup_warnings.lock().lines.clear(),
            _ => return false,
        }
        true
    }
    pub fn lost_lines(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

pub fn now_millis() -> i64 {
    runtime::now_millis()
}

/// One line, without its newline.
fn format_line(
    millis: i64,
    severity: Severity,
    component: &str,
    id: i32,
    ctx: &str,
    msg: &str,
    attr: &Document,
    tags: &[&str],
) -> String {
    let mut line = String::with_capacity(160 + msg.len());
    line.push_str("{\"t\":{\"$date\":\"");
    line.push_str(&iso_date(millis));
    line.push_str("\"},");
    // The columns are padded as the real server pads them.
    line.push_str(&format!("\"s\":{:<6}", format!("\"{}\",", severity.letter())));
    line.push_str(&format!("\"c\":{:<12}", format!("\"{component}\",")));
    line.push_str(&format!("\"id\":{:<9}", format!("{id},")));
    line.push_str("\"ctx\":");
    write_text(&mut line, ctx);
    line.push_str(",\"msg\":");
    write_text(&mut line, msg);
    if !attr.is_empty() {
        line.push_str(",\"attr\":");
        write_logged(&mut line, attr);
    }
    if !tags.is_empty() {
        line.push_str(&format!(",\"tags\":{tags:?}"));
    }
    line.push('}');
    line
}
