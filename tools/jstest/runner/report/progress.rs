//! What is shown while tests run: a bar on a terminal, one line a test otherwise. Failures are shown at once.

use super::{group, print};
use crate::runner::outcome::{Outcome, Status};
use crate::runner::run::Event;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Instant;

const BAR_WIDTH: usize = 24;

pub(crate) struct Progress {
    on_terminal: bool,
    total: usize,
    done: usize,
    failed: usize,
    begun: Instant,
    running: BTreeMap<usize, String>,
}

impl Progress {
    pub(crate) fn new(total: usize) -> Progress {
        let on_terminal = std::io::stdout().is_terminal();
        Progress { on_terminal, total, done: 0, failed: 0, begun: Instant::now(), running: BTreeMap::new() }
    }

    pub(crate) fn show(&mut self, event: &Event) {
        match event {
            Event::Started { job, name } => {
                self.running.insert(*job, name.clone());
            }
            Event::Finished { job, outcome } => {
                self.running.remove(job);
                self.done += 1;
                self.failed += usize::from(outcome.status.is_failure());
                self.finished(outcome);
            }
        }
        self.draw();
    }

    fn finished(&self, outcome: &Outcome) {
        // On a terminal the bar tells of passes; only what needs reading scrolls by.
        if self.on_terminal && !outcome.status.is_failure() {
            return;
        }
        self.clear();
        print(&line(outcome));
        if !outcome.tail.is_empty() {
            let tail: String = outcome.tail.lines().map(|l| format!("    | {l}\n")).collect();
            print(&tail);
        }
    }

    /// Draws the bar again, with the time that has passed.
    pub(crate) fn draw(&self) {
        if !self.on_terminal {
            return;
        }
        let filled = (BAR_WIDTH * self.done).checked_div(self.total).unwrap_or(0);
        let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR_WIDTH - filled));
        let seconds = self.begun.elapsed().as_secs();
        let mut text = format!("[{bar}] {}/{} {seconds} s", self.done, self.total);
        if self.failed > 0 {
            text.push_str(&format!(", {} failed", self.failed));
        }
        for name in self.running.values() {
            text.push_str(&format!("  {}", name.rsplit('/').next().unwrap_or(name)));
        }
        let shown: String = text.chars().take(columns().saturating_sub(1)).collect();
        print(&format!("\r\x1b[K{shown}"));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if self.on_terminal {
            print("\r\x1b[K");
        }
    }
}

fn line(outcome: &Outcome) -> String {
    let (status, group, name) = (outcome.status.name(), group(outcome), &outcome.name);
    let mut line = match outcome.status {
        Status::Skip => format!("{status:14} {group:12} {name}: {}", outcome.reason),
        Status::Pass => format!("{status:14} {group:12} {name}  {:.2} s", outcome.seconds),
        _ => format!("{status:14} {group:12} {name}  {:.2} s: {}", outcome.seconds, outcome.reason),
    };
    if outcome.binary_output {
        line.push_str("  (prints bytes that are no text)");
    }
    if let Some(reason) = &outcome.fixture_replaced {
        line.push_str(&format!("  (fixture replaced: {reason})"));
    }
    line.push('\n');
    line
}

fn columns() -> usize {
    // SAFETY: winsize is plain data, and the call fills it or fails.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        match libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) {
            0 => size.ws_col,
            _ => 0,
        }
    };
    if size == 0 { 80 } else { size.into() }
}
