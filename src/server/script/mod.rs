//! Where a node's scripts run: a few processes of this binary in a role of their own (`script::child`).
//!
//! ```text
//! command ── session ── slot ── process        one call at a time in each process; a session keeps to its slot
//! ```
//! A session takes a slot without others, or a new one, or, above [`SLOTS_MAX`], shares. Processes start with their
//! first call and stay for the next session. Whoever waits for a reply asks its operation every few milliseconds whether
//! to go on; if not, or if the function's time is up, the process is killed, and with it whatever the script holds.
//! A session that shared it begins anew.
//!
//! A process ends by itself when its standard input does: none survives the server, however that ends.

mod process;

use crate::log::Logger;
use crate::options::VERSION;
use crate::service::Service;
use document::meter::{self, QUANTUM};
use document::{Error, Result, bail, codes, doc};
use node::parameters::Parameters;
use parking_lot::{Mutex, MutexGuard};
use process::{Failed, Process};
use query::script::{Call, Engine, Reply, Session};
use runtime::Instant;
use script::message::{self, CallLimits, Outcome, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Processes of a node.
const SLOTS_MAX: usize = 8;
/// Processes that are kept without a session.
const IDLE_MAX: usize = 2;
/// A script is stopped by its own engine at its time; the process is killed this much later.
const GRACE: Duration = Duration::from_millis(500);
/// How often a caller asks whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The scripts of a node.
pub struct Scripting {
    parameters: Arc<Parameters>,
    log: Arc<Logger>,
    slots: Mutex<Vec<Arc<Slot>>>,
    next_session: AtomicU64,
}

#[derive(Default)]
struct Slot {
    process: Mutex<Option<Process>>,
    sessions: AtomicUsize,
    /// Sessions that ended while the process was busy.
    ended: Mutex<Vec<u64>>,
}

impl Scripting {
    pub fn new(parameters: Arc<Parameters>, log: Arc<Logger>) -> Scripting {
        Scripting { parameters, log, slots: Mutex::default(), next_session: AtomicU64::new(1) }
    }
    /// The slot of a new session.
    fn slot(&self) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        let sessions = |s: &Arc<Slot>| s.sessions.load(Ordering::Relaxed);
        let least = slots.iter().min_by_key(|s| sessions(s)).cloned();
        let slot = match least {
            Some(slot) if sessions(&slot) == 0 || slots.len() >= SLOTS_MAX => slot,
            _ => {
                let slot = Arc::new(Slot::default());
                slots.push(slot.clone());
                slot
            }
        };
        slot.sessions.fetch_add(1, Ordering::Relaxed);
        slot
    }
    fn limits(&self) -> CallLimits {
        let megabytes = match self.parameters.int("jsHeapLimitMB") {
            n if n > 0 => n as usize,
            _ => 1100,
        };
        let time = self.parameters.int("internalQueryJavaScriptFnTimeoutMillis").max(1);
        CallLimits { heap_bytes: megabytes << 20, time: Duration::from_millis(time as u64) }
    }
    fn note(&self, printed: Vec<String>) {
        for line in printed {
            self.log.info("QUERY", 20162, "js", "JavaScript printed", doc! { "text": line });
        }
    }
}

/// The processes of one node.
pub struct Processes(pub Arc<Scripting>);

impl Engine for Processes {
    fn session(&self) -> Arc<dyn Session> {
        let id = self.0.next_session.fetch_add(1, Ordering::Relaxed);
        Arc::new(Calls { scripting: self.0.clone(), id, slot: Mutex::new(None) })
    }
}

/// Lets the node's parts run scripts, unless scripting is disabled.
pub async fn start(service: &Arc<Service>) -> Result<()> {
    if service.options.parsed.get_path("security.javascriptEnabled").is_some_and(|v| !v.truthy()) {
        return Ok(());
    }
    let scripting = Scripting::new(service.parameters.clone(), service.log.clone());
    let engine: Arc<dyn Engine> = Arc::new(Processes(Arc::new(scripting)));
    // Each is started once.
    if let Some(node) = &service.node {
        let _ = node.scripting.set(engine.clone());
    }
    if let Ok(router) = service.members.router() {
        let _ = router.scripting.set(engine);
    }
    Ok(())
}

/// The calls of one command.
struct Calls {
    scripting: Arc<Scripting>,
    id: u64,
    /// Taken with the first call.
    slot: Mutex<Option<Arc<Slot>>>,
}

impl Session for Calls {
    fn call(&self, call: &Call<'_>) -> Result<Reply> {
        let slot = self.slot.lock().get_or_insert_with(|| self.scripting.slot()).clone();
        let limits = self.scripting.limits();
        let emits = call.emits.then(|| self.scripting.parameters.int("internalQueryMaxJsEmitBytes") as usize);
        let message = Request::Call(
            self.id,
            message::Call {
                code: call.code,
                this: call.this,
                args: call.args,
                scope: call.scope,
                emits,
                limits,
            },
        );
        let reply = exchange(&slot, &message.to_bytes(), limits.time)?;
        self.scripting.note(reply.printed);
        match reply.outcome {
            Outcome::Value(v) => Ok(Reply::Value(v)),
            Outcome::Emitted(pairs) => Ok(Reply::Emitted(pairs)),
            Outcome::Failed(e) => Err(of_script(e)),
        }
    }
}

/// What a script has thrown. A code by which members of a cluster steer one another, that a placement is stale or the node
/// no primary, is not the script's to say.
fn of_script(e: Error) -> Error {
    match document::error::categories(e.code) {
        0 => e,
        _ => Error { code: codes::JS_INTERPRETER_FAILURE, ..e },
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        let Some(slot) = self.slot.get_mut().take() else { return };
        let left = slot.sessions.fetch_sub(1, Ordering::Relaxed) - 1;
        let end = Request::End(self.id).to_bytes();
        match slot.process.try_lock() {
            Some(mut process) => {
                let told = process.as_mut().is_some_and(|p| p.tell(&end).is_ok());
                let idle = |s: &&Arc<Slot>| s.sessions.load(Ordering::Relaxed) == 0;
                let surplus = left == 0 && self.scripting.slots.lock().iter().filter(idle).count() > IDLE_MAX;
                if !told || surplus {
                    *process = None;
                }
            }
            None => slot.ended.lock().push(self.id),
        }
    }
}

/// Waits, and asks the operation meanwhile.
fn wait_for<'a>(slot: &'a Slot) -> Result<MutexGuard<'a, Option<Process>>> {
    loop {
        if let Some(process) = slot.process.try_lock_for(LOOK_EVERY) {
            return Ok(process);
        }
        meter::spend(QUANTUM as usize)?;
    }
}

/// Sends one call and waits for its reply.
fn exchange(slot: &Slot, call: &[u8], time: Duration) -> Result<message::Reply> {
    let mut held = wait_for(slot)?;
    let process = match &mut *held {
        Some(process) => process,
        none => none.insert(Process::start(VERSION).map_err(|e| {
            Error::new(codes::JS_INTERPRETER_FAILURE, format!("cannot start a process for scripts: {e}"))
        })?),
    };
    let kill_at = Instant::now().checked_add(time + GRACE);
    let ended = std::mem::take(&mut *slot.ended.lock());
    let told = ended.iter().try_for_each(|id| process.tell(&Request::End(*id).to_bytes()));
    let done = told.map_err(Failed::Pipe).and_then(|()| {
        process.exchange(call, LOOK_EVERY, || {
            meter::spend(QUANTUM as usize)?;
            if kill_at.is_some_and(|at| Instant::now() >= at) {
                bail!(JS_INTERPRETER_FAILURE, "Interrupted by the host");
            }
            Ok(())
        })
    });
    let done = match done {
        Ok(reply) => message::Reply::parse(reply.doc()),
        Err(Failed::Asked(e)) => Err(e),
        Err(Failed::Pipe(e)) => Err(Error::new(
            codes::JS_INTERPRETER_FAILURE,
            format!("the script's process has ended, probably for want of memory ({e})"),
        )),
    };
    // What did not reply in time, or not as agreed, is not asked again.
    if done.is_err() {
        *held = None;
    }
    done
}
