//! The script process: one thread reads calls from standard input, another evaluates them and writes replies to
//! standard output.
//!
//! ```text
//! stdin ── reader ── channel ── engine ── stdout
//!             └─ end of the pipe: the process ends at once, whatever the engine is doing
//! ```
//! Each session has a runtime of its own: globals and memory of one are nothing to another. What is compiled stays until
//! the session ends.
//!
//! Invariant: a script finds no file, no socket and no way to start a process among its natives.

mod scope;
#[cfg(test)]
mod tests;

use crate::message::{self, Call, Request};
use document::{DocWriter, codes};
use scope::{Failure, Session};
use std::collections::HashMap;
use std::io::Write;
use std::sync::mpsc;

/// The argument by which the binary knows that it is to be a script process.
pub const ROLE: &str = "--script-process";

/// Sessions kept at a time; a server ends them, so more are a defect, and the oldest go.
const SESSIONS_MAX: usize = 64;

/// Serves calls until standard input ends; returns the exit code. `version` is what `version()` returns.
pub fn run(version: &str) -> i32 {
    give_way();
    let (send, calls) = mpsc::channel();
    let version = version.to_string();
    let engine = std::thread::Builder::new().name("js".into()).stack_size(crate::STACK_BYTES);
    if engine.spawn(move || serve(&calls, &version)).is_err() {
        return 1;
    }
    let mut input = std::io::stdin().lock();
    while let Ok(Some(call)) = message::read(&mut input) {
        if send.send(call).is_err() {
            return 1;
        }
    }
    0
}

/// When memory is short the kernel ends this process before the server; and it neither dumps its memory nor hears the
/// signals a terminal sends to a group.
fn give_way() {
    // A kernel that refuses leaves the process as any other.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // SAFETY: numbers of this process alone.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
}

fn serve(calls: &mpsc::Receiver<document::DocBuf>, version: &str) {
    let mut sessions: HashMap<u64, Session> = HashMap::new();
    let mut output = std::io::stdout().lock();
    while let Ok(message) = calls.recv() {
        let (session, call) = match Request::parse(message.doc()) {
            Ok(Request::Call(session, call)) => (session, call),
            Ok(Request::End(session)) => {
                sessions.remove(&session);
                continue;
            }
            Err(_) => std::process::exit(2),
        };
        let reply = reply(&mut sessions, session, call, version);
        if output.write_all(&reply).and_then(|()| output.flush()).is_err() {
            std::process::exit(0);
        }
    }
}

/// The reply to one call.
fn reply(sessions: &mut HashMap<u64, Session>, session: u64, call: Call<'_>, version: &str) -> Vec<u8> {
    if !sessions.contains_key(&session) && sessions.len() >= SESSIONS_MAX {
        let oldest = sessions.keys().min().copied();
        oldest.and_then(|id| sessions.remove(&id));
    }
    let made = match sessions.entry(session) {
        std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
        std::collections::hash_map::Entry::Vacant(entry) => {
            Session::new(call.limits.heap_bytes, version).map(|new| entry.insert(new))
        }
    };
    let mut bytes = Vec::new();
    match made {
        Ok(session) => {
            let outcome = session.call(&call);
            let printed = session.take_printed();
            DocWriter::write(&mut bytes, |w| {
                write_outcome(w, outcome);
                if !printed.is_empty() {
                    w.array_with("printed", |w| {
                        for (i, line) in printed.iter().enumerate() {
                            w.with_index(i, |w, name| w.string(name, line));
                        }
                    });
                }
            });
        }
        Err(failure) => DocWriter::write(&mut bytes, |w| write_outcome(w, Err(failure))),
    }
    bytes
}

fn write_outcome(w: &mut DocWriter<'_>, outcome: Result<scope::Result, Failure>) {
    match outcome {
        Ok(scope::Result::Value(holder)) => {
            let first = document::Doc::from_validated(&holder).iter().next();
            match first {
                Some(e) => w.element_as("value", &e),
                None => w.tag_only(0x06, "value"),
            }
        }
        Ok(scope::Result::Emitted(list)) => w.array_with("emitted", |w| {
            for (i, pair) in list.iter().enumerate() {
                w.with_index(i, |w, name| w.document(name, document::Doc::from_validated(pair)));
            }
        }),
        Err(Failure { code, message }) => {
            w.i32("code", code.unwrap_or(codes::JS_INTERPRETER_FAILURE));
            w.string("message", &message);
        }
    }
}
