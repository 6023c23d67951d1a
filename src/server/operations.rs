//! Operations under way: what currentOp shows and killOp ends.
//!
//! Entering and leaving take one uncontended lock of the connection's own slot; only currentOp walks all of them.

use crate::connection::Connection;
use crate::dispatch::Command;
use document::{Doc, DocBuf, Document, codes, doc};
use node::Operation;
use node::auth::Owners;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// What a connection is doing now, as a copy.
#[derive(Clone)]
pub struct Current {
    pub operation: Arc<Operation>,
    pub command: &'static Command,
    /// The request's body, cut where it is long.
    pub body: DocBuf,
}

/// A connection's place in the registry: what it does, one thing at a time unless it is multiplexed.
#[derive(Default)]
pub struct Slot(Mutex<Vec<Inner>>);

#[derive(Default)]
struct Inner {
    running: Option<(Arc<Operation>, &'static Command)>,
    /// The id of the message that asked for it.
    request: i32,
    /// The body's bytes; the buffer is used again by every operation.
    body: Vec<u8>,
}

impl Slot {
    /// The operations under way.
    pub fn current(&self) -> Vec<Current> {
        let current = |inner: &Inner| {
            let (operation, command) = inner.running.clone()?;
            Some(Current { operation, command, body: DocBuf::from_validated(inner.body.clone()) })
        };
        self.0.lock().iter().filter_map(current).collect()
    }
    pub fn operations(&self) -> Vec<Arc<Operation>> {
        self.0
            .lock()
            .iter()
            .filter_map(|i| i.running.as_ref())
            .map(|(operation, _)| operation.clone())
            .collect()
    }
    /// Interrupts what ends with its client: the request of this id, or all of them.
    pub fn disconnect(&self, request: Option<i32>, peer_is_node: bool) {
        for inner in self.0.lock().iter().filter(|i| request.is_none_or(|id| i.request == id)) {
            if let Some((operation, command)) = &inner.running
                && command.ends_with(peer_is_node)
            {
                operation.kill(codes::CLIENT_DISCONNECT);
            }
        }
    }
    pub fn active(&self) -> usize {
        self.0.lock().iter().filter(|i| i.running.is_some()).count()
    }
}

/// The registry of one node.
#[derive(Default)]
pub struct Operations {
    next_id: AtomicI64,
    connections: Mutex<BTreeMap<i64, Weak<Connection>>>,
    transition: Mutex<Transition>,
}

/// The last change of this member's state, and how many operations it killed and left alone.
#[derive(Clone, Copy, Default)]
struct Transition {
    name: &'static str,
    killed: i64,
    running: i64,
}

/// Bodies up to this many bytes are kept for currentOp; of longer ones the first field only.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// So many stay allocated for the next operation.
const BODY_BYTES_KEPT: usize = 2048;

/// Leaves the registry when dropped.
pub struct Entered<'a> {
    connection: &'a Connection,
    place: usize,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(inner) = self.connection.slot.0.lock().get_mut(self.place) {
            inner.running = None;
            if inner.body.capacity() > BODY_BYTES_KEPT {
                inner.body = Vec::new();
            }
        }
    }
}

impl Operations {
    pub fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Relaxed) + 1
    }
    pub fn add_connection(&self, connection: &Arc<Connection>) {
        self.connections.lock().insert(connection.id, Arc::downgrade(connection));
    }
    pub fn remove_connection(&self, id: i64) {
        self.connections.lock().remove(&id);
    }
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.connections.lock().values().filter_map(Weak::upgrade).collect()
    }

    pub fn enter<'a>(
        &self,
        operation: &Arc<Operation>,
        connection: &'a Connection,
        command: &'static Command,
        body: Doc<'_>,
        request: i32,
    ) -> Entered<'a> {
        document::meter::oversee(operation.clone());
        let mut places = connection.slot.0.lock();
        let place = places.iter().position(|i| i.running.is_none()).unwrap_or_else(|| {
            places.push(Inner::default());
            places.len() - 1
        });
        let inner = &mut places[place];
        inner.body.clear();
        match body.bytes().len() {
            0..=BODY_BYTES_MAX => inner.body.extend_from_slice(body.bytes()),
            _ => inner.body.extend_from_slice(first_field(body).bytes()),
        }
        inner.request = request;
        inner.running = Some((operation.clone(), command));
        drop(places);
        Entered { connection, place }
    }

    /// Kills the operation of this id; false when there is none.
    pub fn kill(&self, id: i64, code: i32) -> bool {
        let all = self.connections();
        let found = all.iter().flat_map(|c| c.slot.operations()).find(|operation| operation.id == id);
        if let Some(operation) = &found {
            operation.kill(code);
        }
        found.is_some()
    }
    /// The digest of the user whose operation it is; `None` where there is no such operation or nobody has logged in.
    pub fn owner(&self, id: i64) -> Option<[u8; 32]> {
        let all = self.connections();
        let connection =
            all.iter().find(|c| c.slot.operations().iter().any(|operation| operation.id == id))?;
        connection.client.user().map(|user| user.digest)
    }
    /// Kills the writes under way: this node is no primary any more, through this transition.
    pub fn end_writes(&self, transition: &'static str, code: i32) {
        let mut killed = 0;
        for current in self.connections().iter().flat_map(|c| c.slot.current()) {
            if current.command.kind == crate::dispatch::Kind::Write {
                current.operation.kill(code);
                killed += 1;
            }
        }
        self.note_transition(transition, killed);
    }
    /// Kills what clients do here: what they have read is taken back, in this transition. Nodes go on with one another.
    /// Returns the connections that clients have not asked to keep over this.
    pub fn end_clients(&self, transition: &'static str, code: i32) -> Vec<Arc<Connection>> {
        let mut clients = self.connections();
        clients.retain(|c| !c.client.internal.load(Relaxed));
        let operations: Vec<_> = clients.iter().flat_map(|c| c.slot.operations()).collect();
        operations.iter().for_each(|operation| operation.kill(code));
        self.note_transition(transition, operations.len() as i64);
        clients.retain(|c| !c.stays_over_rollback.load(Relaxed));
        clients
    }
    /// Keeps what a change of this member's state did to the operations under way.
    pub fn note_transition(&self, name: &'static str, killed: i64) {
        let running = self.active() as i64 - killed;
        *self.transition.lock() = Transition { name, killed, running };
    }
    /// `serverStatus.metrics.repl.stateTransition`.
    pub fn last_transition(&self) -> Document {
        let Transition { name, killed, running } = *self.transition.lock();
        doc! {
            "lastStateTransition": name, "totalOperationsKilled": killed, "totalOperationsRunning": running,
        }
    }
    /// Kills everything under way, as at shutdown.
    pub fn kill_all(&self, code: i32) {
        for operation in self.connections().iter().flat_map(|c| c.slot.operations()) {
            operation.kill(code);
        }
    }
    /// One document for each operation (and each idle connection where asked for), as `$currentOp` shows them.
    pub fn describe(
        &self,
        host: &str,
        idle_connections: bool,
        owners: &Owners,
        transaction: &TransactionOf<'_>,
    ) -> Vec<Document> {
        let connections = self.connections();
        let mut shown = Vec::new();
        for connection in &connections {
            let all = connection.slot.current();
            if all.is_empty() && idle_connections && belongs(connection, None, owners) {
                shown.push(describe(connection, None, host, transaction));
            }
            let seen = all.iter().filter(|current| belongs(connection, Some(current), owners));
            shown.extend(seen.map(|current| describe(connection, Some(current), host, transaction)));
        }
        shown
    }
    pub fn active(&self) -> usize {
        self.connections().iter().map(|c| c.slot.active()).sum()
    }
}

fn first_field(body: Doc<'_>) -> DocBuf {
    document::DocWriter::build(|w| {
        for element in body.iter() {
            let generic = matches!(element.name(), "$db" | "lsid" | "comment");
            if (generic || w.position() == 4) && element.whole().len() <= 256 {
                w.element(&element);
            }
        }
        w.string("$truncated", "body too long");
    })
}

/// Whether what the connection does is done for one of these users. Of a router's requests the session tells.
fn belongs(connection: &Connection, current: Option<&Current>, owners: &Owners) -> bool {
    let session = current.and_then(|c| c.operation.session.as_ref()).map(|s| &s.lsid);
    match connection.client.user() {
        Some(user) if user.is_system() => owners.include(&user.digest) || owners.include_some(session),
        Some(user) => owners.include(&user.digest),
        None => *owners == Owners::Everybody,
    }
}

/// The account of the transaction that an operation is a statement of.
pub type TransactionOf<'a> = dyn Fn(&Operation) -> Option<Document> + 'a;

fn describe(
    connection: &Connection,
    current: Option<&Current>,
    host: &str,
    transaction: &TransactionOf<'_>,
) -> Document {
    let mut d = doc! {
        "type": "op",
        "host": host,
        "desc": connection.name(),
    };
    connection.client.describe(&mut d);
    d.push("active", current.is_some());
    d.push("currentOpTime", document::extended_json::iso_date(crate::log::now_millis()));
    let Some(current) = current else { return d };
    let operation = &current.operation;
    let micros = operation.started.elapsed().as_micros() as i64;
    d.push("threaded", true);
    d.push("opid", i32::try_from(operation.id).unwrap_or(i32::MAX));
    if let Some(session) = &operation.session {
        d.push("lsid", session.lsid.to_document());
    }
    if let Some(user) = connection.client.user() {
        d.push("effectiveUsers", vec![user.name.to_document()]);
    }
    if let Some(transaction) = transaction(operation) {
        d.push("transaction", transaction);
    }
    d.push("secs_running", micros / 1_000_000);
    d.push("microsecs_running", micros);
    d.push("op", operation_type(current.command.name));
    d.push("ns", namespace(current.command.name, current.body.doc()));
    d.push("redacted", false);
    d.push("command", current.command.masked(current.body.doc()));
    if operation.kill_pending() {
        d.push("killPending", true);
    }
    if let Some(point) = operation.paused_at() {
        d.push("failpointMsg", point);
    }
    if let Some((message, progress)) = operation.progress() {
        d.push("msg", message);
        if let Some(progress) = progress {
            d.push("progress", progress);
        }
    }
    d.push("numYields", 0);
    d.push("locks", Document::new());
    d.push("waitingForLock", operation.waits_for_lock());
    d.push("lockStats", Document::new());
    d.push("waitingForFlowControl", operation.waits_for_ticket());
    d.push("flowControlStats", Document::new());
    d
}

/// The kind of operation that a command is, as currentOp and the profiler show it.
pub(crate) fn operation_type(name: &str) -> &'static str {
    match name {
        "find" => "query",
        "getMore" => "getmore",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        _ => "command",
    }
}

/// The name that a command is given: that of its collection, for most.
pub(crate) fn target<'a>(command: &str, body: Doc<'a>) -> Option<&'a str> {
    match command {
        "getMore" => body.get_str("collection"),
        _ => body.iter().next().and_then(|e| e.value().as_str()),
    }
}

/// The namespace of a command: `db.$cmd` for one that names no collection.
pub(crate) fn namespace(command: &str, body: Doc<'_>) -> String {
    let db = body.get_str("$db").unwrap_or("");
    format!("{db}.{}", target(command, body).unwrap_or("$cmd"))
}
