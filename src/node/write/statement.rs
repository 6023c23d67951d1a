//! What the write commands share: parsing of their common fields, per-statement errors, the reply.

use crate::namespace::{Slot, SlotState};
use crate::operation::Operation;
use crate::session::Checkout;
use document::error::MESSAGE_BYTES_MAX;
use document::{Doc, DocBuf, Document, Error, Result, Value, ValueRef, bail, codes, doc, meter};
use protocol::session::{EntryTime, Statement};
use query::timeseries::BUCKETS_PREFIX;

/// The largest document a user may store, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The code of a pipeline stage that does not exist.
const UNKNOWN_STAGE: i32 = 40324;
/// The most statements of one write command.
pub const BATCH_MAX: usize = 100_000;

/// What a whole write command did so far.
#[derive(Default)]
pub struct Outcome {
    pub n: i64,
    pub modified: i64,
    pub upserted: Vec<Document>,
    pub errors: Vec<Document>,
    messages: Messages,
    pub first_error: Option<Error>,
    pub retried: Vec<i32>,
    /// What the router has to put where it belongs: see [`MOVED`].
    pub moved: Option<DocBuf>,
}

/// The member of a reply that holds the document which an update has taken from this shard, for the router to insert
/// where its new shard key belongs.
pub const MOVED: &str = "movedDocument";

impl Outcome {
    pub fn fail(&mut self, index: usize, error: &Error) {
        let mut e = doc! { "index": index as i32, "code": error.code };
        error_details(error, &mut e);
        e.push("errmsg", self.messages.take(error));
        self.errors.push(e);
        self.first_error.get_or_insert_with(|| error.clone());
    }
    /// Of a command all of whose `n` statements fail alike.
    ///
    /// # Errors
    /// That one, inside a transaction.
    pub fn refused(op: &Operation, ordered: bool, n: usize, error: Error) -> Result<Outcome> {
        if op.transaction().is_some() {
            return Err(error);
        }
        let mut outcome = Outcome::default();
        let tried = if ordered { n.min(1) } else { n };
        (0..tried).for_each(|index| outcome.fail(index, &error));
        Ok(outcome)
    }
    /// The reply's members, without `ok`.
    pub fn reply(self, updates: bool) -> Document {
        let mut reply = doc! { "n": self.n as i32 };
        if updates {
            reply.push("nModified", self.modified as i32);
        }
        if !self.upserted.is_empty() {
            reply.push("upserted", self.upserted);
        }
        if !self.errors.is_empty() {
            reply.push("writeErrors", self.errors);
        }
        if !self.retried.is_empty() {
            reply.push("retriedStmtIds", Value::Array(self.retried.into_iter().map(Value::Int32).collect()));
        }
        if let Some(moved) = self.moved {
            reply.push(MOVED, Value::from(moved));
        }
        reply
    }
}

/// The messages of a reply's errors, of which only the first are shown where all together are long.
#[derive(Default)]
pub struct Messages {
    bytes: usize,
}

impl Messages {
    /// The message that the reply shows of its next error: nothing after [`MESSAGE_BYTES_MAX`] in all, as on the real server.
    pub fn take<'a>(&mut self, error: &'a Error) -> &'a str {
        if self.bytes >= MESSAGE_BYTES_MAX {
            return "";
        }
        let shown = error.shown_message();
        self.bytes += shown.len();
        shown
    }
}

/// Units of work that a statement counts for beside what it does.
const STATEMENT_UNITS: usize = 16;
/// Statements after which others may run.
const STATEMENTS_AT_ONCE: usize = 64;

/// Between two statements of a command, before the one of this index: a command has up to [`BATCH_MAX`], of which none may wait for
/// anything.
///
/// # Errors
/// Those of an operation that is to end.
pub async fn between_statements(op: &Operation, index: usize) -> Result<()> {
    if index == 0 {
        return Ok(());
    }
    meter::spend(STATEMENT_UNITS)?;
    match index % STATEMENTS_AT_ONCE {
        0 => crate::lane::give_way(op).await,
        _ => op.check_interrupt(),
    }
}

/// What an error of this code has beside the code; of others everything is under `errInfo`.
pub fn fields_beside(code: i32) -> &'static [&'static str] {
    match code {
        codes::DUPLICATE_KEY => &["keyPattern", "keyValue"],
        codes::COLLECTION_UUID_MISMATCH => {
            &["db", "collectionUUID", "expectedCollection", "actualCollection"]
        }
        _ => &[],
    }
}

/// Adds what an error carries beside its code and text, where the real server puts it in a statement's error.
pub fn error_details(error: &Error, e: &mut Document) {
    let Some(info) = &error.info else { return };
    match error.code {
        code if !fields_beside(code).is_empty() => {
            info.iter().for_each(|(name, value)| e.push(name, value.clone()))
        }
        codes::DOCUMENT_VALIDATION_FAILURE => {
            e.push("errInfo", info.get("errInfo").cloned().unwrap_or(Value::Document((**info).clone())));
        }
        _ => e.push("errInfo", (**info).clone()),
    }
}

/// Whether an error ends the whole command rather than one statement: the node cannot go on, or must not.
pub fn ends_command(error: &Error) -> bool {
    use document::error::{INTERRUPTION, NOT_PRIMARY};
    error.is(INTERRUPTION | NOT_PRIMARY)
        || error.code == codes::LOG_WRITE_FAILED
        // A transaction has lost to another, or cannot go on; outside transactions the write waits before it comes to this.
        || matches!(error.code, codes::WRITE_CONFLICT | codes::LOCK_TIMEOUT | codes::NO_SUCH_TRANSACTION)
        || error.code == codes::SHARD_CANNOT_REFRESH_DUE_TO_LOCKS_HELD
        || error.is(document::error::SNAPSHOT)
        // Stages of update pipelines are looked up when the command is read, before the first statement.
        || error.code == UNKNOWN_STAGE
}
/// Whether an error ends an ordered *and* an unordered command's remaining statements: the router must target anew.
pub fn is_stale(error: &Error) -> bool {
    use document::error::{STALE_DB_VERSION, STALE_SHARD_VERSION};
    error.is(STALE_DB_VERSION | STALE_SHARD_VERSION)
}

/// Whether a statement's error ends the command: in a transaction every error does, since it aborts the transaction, and
/// one that says where to go instead is for the router alone.
pub fn ends_command_of(op: &Operation, error: &Error) -> bool {
    ends_command(error) || (op.transaction().is_some() && is_stale(error))
}
/// Whether the statements after a failed one are left out.
pub fn stops(op: &Operation, ordered: bool) -> bool {
    if let Some(t) = op.transaction() {
        t.fail();
    }
    ordered || op.transaction().is_some()
}

/// The statement id of the command's `index`-th statement: as given, or counted from 0.
pub fn statement_id(op: &Operation, index: usize) -> i32 {
    match op.session.as_ref().map(|s| s.stmt_ids.as_slice()) {
        Some([first]) => first.saturating_add(index as i32),
        Some(ids) if !ids.is_empty() => ids.get(index).copied().unwrap_or(-1),
        _ => index as i32,
    }
}

/// Whether the statement was executed before, under its session.
pub fn executed_before(checkout: Option<&Checkout>, stmt: i32) -> Result<Option<EntryTime>> {
    Ok(match checkout.map(|c| c.check(stmt)).transpose()? {
        Some(Statement::AlreadyExecuted(at)) => Some(at),
        _ => None,
    })
}

/// `ordered`, which is true by default.
pub fn ordered(body: Doc<'_>) -> bool {
    !matches!(body.get("ordered"), Some(ValueRef::Boolean(false)))
}

/// Refuses an empty or oversized batch, and one whose statement ids do not fit it.
pub fn check_batch(body: Doc<'_>, n: usize) -> Result<()> {
    if !(1..=BATCH_MAX).contains(&n) {
        bail!(INVALID_LENGTH, "Write batch sizes must be between 1 and {BATCH_MAX}. Got {n} operations.");
    }
    check_statement_ids(body, n)
}

/// Refuses statement ids that are not one for each of the command's `n` statements, or given in both ways.
pub fn check_statement_ids(body: Doc<'_>, n: usize) -> Result<()> {
    let Some(ids) = body.get("stmtIds").and_then(|v| v.as_array()).map(|ids| ids.iter().count()) else {
        return Ok(());
    };
    if ids != n {
        bail!(
            INVALID_LENGTH,
            "Number of statement ids must match the number of batch entries. Got {ids} statement ids but {n} operations."
        );
    }
    if body.get_present("stmtId").is_some() {
        bail!(INVALID_OPTIONS, "May not specify both stmtId and stmtIds in write command.");
    }
    Ok(())
}

/// Refuses a change of what a view shows.
///
/// # Errors
/// CommandNotSupportedOnView (166).
pub fn check_no_view(slot: &Slot) -> Result<()> {
    refuse_view(slot, &slot.read_unchecked())
}
/// As [`check_no_view`], for who holds the latch.
pub fn refuse_view(slot: &Slot, state: &SlotState) -> Result<()> {
    if state.view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace {} is a view, not a collection", slot.ns);
    }
    Ok(())
}

/// Refuses writes of clients to namespaces that only the node itself writes.
pub fn check_writable(ns: &str) -> Result<()> {
    // Views are made by commands, which check them, and the profile by the profiler.
    if matches!(storage::split_namespace(ns).1, "system.views" | "system.profile") {
        bail!(INVALID_NAMESPACE, "cannot write to '{ns}'");
    }
    check_changeable(ns)
}

/// Refuses what clients would change of namespaces that are not theirs.
pub fn check_changeable(ns: &str) -> Result<()> {
    let (db, name) = storage::split_namespace(ns);
    if name.starts_with("system.") && !changeable_system(db, name) {
        bail!(INVALID_NAMESPACE, "cannot write to '{ns}'");
    }
    if ns == "local.oplog.rs" {
        bail!(INVALID_NAMESPACE, "cannot write to '{ns}'");
    }
    Ok(())
}

fn changeable_system(db: &str, name: &str) -> bool {
    matches!(
        name,
        "system.js" | "system.users" | "system.roles" | "system.version" | "system.views" | "system.profile"
    ) || (db == "config" && name == "system.sessions")
        || name.starts_with(BUCKETS_PREFIX)
        || db == "local"
}
