//! Transactions that the router runs on its own, for statements of one document that may concern several shards
//! ([`super::one_document`]) outside a client's transaction.
//!
//! ```text
//! attempt   a child of the client's session ({id, uid, txnNumber, txnUUID}) begins on every shard the statement asks; where
//!           none of several has a document, again at one cluster time: it may have moved from one to another between them
//! commit    nothing written      commitTransaction to all with the client's write concern, for what they have read; all parts
//!                                let go where that asks for no more than one member
//!           one shard wrote      commitTransaction to those that have read; when all have, to the one that wrote
//!           several wrote        two-phase, by the coordinator shard
//! failed    aborted everywhere; tried again under a new child where the reason passes
//! ```
//!
//! Why a retryable write happens once, whichever routers its deliveries come through: each asks all shards that can hold
//! what another has done, and each shard lets only one child of a write at a time take part, which it tells what is
//! committed (see `node/session.rs`). Take two deliveries that both have written, on W1 and W2. The first to commit did so
//! on W1 after all its parts were alive; had the other begun on W1 after that, it would have been told; had it begun there
//! before, one of the two would have been ended there, and its commit would fail: commits to those that have only read go
//! first. So there is never a second.
//!
//! Where can it get stuck? Two deliveries can end each other; both then pause for a random time. A router that dies leaves
//! parts that hold what they wrote until the next delivery comes, or until `transactionLifetimeLimitSeconds`.

use super::one_document::{Statement, takes_id};
use super::task::{Retry, Task, is_stale};
use super::transaction::{CommitPath, Transaction, worst_concern};
use crate::chunk::ShardId;
use document::error::{NETWORK, NOT_PRIMARY, SNAPSHOT};
use document::{Doc, DocBuf, DocWriter, Document, Error, Result, Value, codes, doc, err};
use futures::future::join_all;
use node::operation::{NO_USER, SessionId, WriteAck, WriteConcern};
use std::sync::Arc;
use std::time::Duration;

/// How often an attempt is repeated when a shard cannot be reached.
const UNREACHED_MAX: usize = 3;
/// How often what ends a transaction is sent when no answer comes.
const COMMITS_MAX: u32 = 6;
/// The longest pause between two attempts.
const PAUSE_MS_MAX: u64 = 64;

/// A shard's refusal of the statement that begins a transaction, when it has had it already.
const BEGUN_BEFORE: i32 = 50911;

/// What a participant says of itself in its replies.
const READ_ONLY: &str = "readOnly";

/// What keeps one statement trying.
#[derive(Default)]
struct Patience {
    stale: Retry,
    unreached: usize,
    duplicates: usize,
    attempts: u32,
}

/// Executes the statement once; returns the reply of the shard that did, or has done so before.
///
/// # Errors
/// What the statement is refused with; interrupts; an unknown outcome as the failure of the connection.
pub async fn run(task: &Task<'_>, statement: &Statement<'_, '_>) -> Result<DocBuf> {
    let mut patience = Patience::default();
    let mut at_one_time = false;
    loop {
        task.op.check_interrupt()?;
        let at = match at_one_time {
            true => Some(task.router.time_to_read_at(task.op).await?),
            false => None,
        };
        let transaction = Transaction::internal(child_session(task), at);
        let inner = task.within(transaction.clone());
        let attempt = statement.attempt(&inner, at_one_time).await;
        let Some(attempt) = attempt.transpose() else {
            task.hear_from(&inner);
            task.router.abort_everywhere(&transaction, codes::INTERRUPTED).await;
            at_one_time = true;
            continue;
        };
        let done = match attempt {
            // What the shard refused is the client's to hear, and the part is aborted there.
            Ok(reply) if transaction.failed().is_some() => Ok(without(reply.doc(), &[READ_ONLY])),
            Ok(reply) => commit(task, &transaction, without(reply.doc(), &[READ_ONLY])).await,
            Err(e) => Err(e),
        };
        task.hear_from(&inner);
        task.router.abort_everywhere(&transaction, codes::INTERRUPTED).await;
        let Err(e) = done else { return done };
        if e.code == codes::TRANSACTION_COMMITTED && task.op.is_retryable_write() {
            match statement.executed_before(task).await {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                Err(e) => patience.absorb(task, statement.ns(), e).await?,
            }
        }
        patience.absorb(task, statement.ns(), e).await?;
    }
}

impl Patience {
    /// Returns when the statement can be tried again; gives the error back when it is final.
    async fn absorb(&mut self, task: &Task<'_>, ns: &str, mut error: Error) -> Result<()> {
        if is_stale(&error) {
            return self.stale.absorb(task, ns, error).await;
        }
        let unreached = error.is(NETWORK | NOT_PRIMARY);
        let duplicate = takes_id(&error);
        self.unreached += unreached as usize;
        self.duplicates += duplicate as usize;
        let again = match (unreached, duplicate) {
            (true, _) => task.op.is_retryable_write() && self.unreached <= UNREACHED_MAX,
            // Another upsert of the same document may have come first: then it is found now.
            (_, true) => self.duplicates <= 1,
            _ => passes(&error),
        };
        if !again {
            // The client has no transaction that could be transient.
            error.labels.clear();
            return Err(error);
        }
        self.attempts += 1;
        let longest = (1 << self.attempts.min(6)).clamp(2, PAUSE_MS_MAX);
        let ms = runtime::random_range(1..=longest) * if unreached { 8 } else { 1 };
        task.op.interruptible(Box::pin(tokio::time::sleep(Duration::from_millis(ms)))).await
    }
}

/// Whether the reason is another's transaction, or a placement that has just changed.
fn passes(e: &Error) -> bool {
    e.is(SNAPSHOT)
        || matches!(
            e.code,
            codes::WRITE_CONFLICT
                | codes::LOCK_TIMEOUT
                | codes::NO_SUCH_TRANSACTION
                | codes::TRANSACTION_COMMITTED
                | codes::PREPARED_TRANSACTION_IN_PROGRESS
                | BEGUN_BEFORE
        )
}

/// A session for one attempt: a child of the client's.
fn child_session(task: &Task<'_>) -> SessionId {
    let uuid = runtime::uuid();
    match &task.op.session {
        Some(fields) => {
            let number = fields.txn_number.filter(|_| task.op.is_retryable_write());
            fields.lsid.parent().with_child(number, uuid)
        }
        None => SessionId::of_client(runtime::uuid(), NO_USER).with_child(None, uuid),
    }
}

/// Commits what an attempt has done. The reply is the attempt's, with the write concern error of the commit.
async fn commit(task: &Task<'_>, transaction: &Arc<Transaction>, reply: DocBuf) -> Result<DocBuf> {
    let committed = match transaction.commit_path() {
        CommitPath::None => return Ok(reply),
        CommitPath::ReadOnly(_) if !waits_for_others(task) => return Ok(reply),
        CommitPath::ReadOnly(shards) => {
            // What was not there, or was as it should be, may be so because of a write that is rolled back yet.
            let commit = transaction.ending(with_concern(task, doc! { "commitTransaction": 1 }));
            let read = join_all(shards.iter().map(|shard| finish(task, shard, &commit))).await;
            let read = read.into_iter().collect::<Result<Vec<_>>>()?;
            read.iter().try_for_each(|reply| still_led(reply.doc()))?;
            transaction.hand_over();
            Ok(worst_concern(read))
        }
        CommitPath::Unknown => {
            return Err(err!(NO_SUCH_TRANSACTION, "a shard has not said what it did for the statement"));
        }
        CommitPath::OneWriter(readers, writer) => {
            let concern = WriteConcern::majority().to_document();
            let commit = transaction.ending(doc! { "commitTransaction": 1, "writeConcern": concern });
            let read = join_all(readers.iter().map(|shard| finish(task, shard, &commit))).await;
            read.into_iter().try_for_each(|reply| still_led(reply?.doc()))?;
            transaction.hand_over();
            let commit = transaction.ending(with_concern(task, doc! { "commitTransaction": 1 }));
            finish(task, &writer, &commit).await
        }
        CommitPath::TwoPhase(coordinator, shards) => {
            transaction.hand_over();
            let shards: Vec<Document> = shards.iter().map(|s| doc! { "shardId": s.to_string() }).collect();
            let command = doc! { "coordinateCommitTransaction": 1, "participants": shards };
            let done = finish(task, &coordinator, &transaction.ending(with_concern(task, command))).await;
            if done.is_err() {
                // Whatever the coordinator has decided: parts that are not prepared are not among those that commit.
                transaction.take_back();
            }
            done
        }
    }?;
    Ok(match committed.doc().get_document("writeConcernError") {
        None => reply,
        Some(e) => DocWriter::build(|w| {
            w.fields_of(reply.doc());
            w.document("writeConcernError", e);
        }),
    })
}

/// Whether a shard that has only read still led when it committed. Else another primary may have written for another delivery of
/// the statement, or something else that the reader should have seen.
///
/// # Errors
/// That of the reply's write concern.
pub(super) fn still_led(reply: Doc<'_>) -> Result<()> {
    let Some(error) = reply.get_document("writeConcernError") else { return Ok(()) };
    let code = error.get_i64("code").and_then(|code| i32::try_from(code).ok());
    let error =
        Error::new(code.unwrap_or(codes::INTERNAL_ERROR), error.get_str("errmsg").unwrap_or_default());
    match error.is(NOT_PRIMARY) {
        true => Err(error),
        false => Ok(()),
    }
}

/// Whether the client's write concern, or the default, asks for more than that the shards' primaries have answered.
fn waits_for_others(task: &Task<'_>) -> bool {
    let own = task.get("writeConcern").and_then(|v| v.as_document()).filter(|d| !d.is_empty());
    // One that cannot be read was refused before.
    let own = own.and_then(|concern| WriteConcern::parse(concern).ok());
    own.is_none_or(|concern| concern.journal || !matches!(concern.w, WriteAck::Nodes(0 | 1)))
}

fn with_concern(task: &Task<'_>, mut command: Document) -> Document {
    let unacknowledged = task.op.write_concern.w == WriteAck::Nodes(0);
    if let Some(concern) = task.get("writeConcern").filter(|_| !unacknowledged) {
        command.push("writeConcern", concern.to_value());
    }
    command
}

/// Sends what ends a transaction until an answer comes. That a shard knows nothing of it is an answer only where none was
/// lost before: the commit may have been done, and forgotten since. A retryable write asks anew, and is told.
async fn finish(task: &Task<'_>, shard: &ShardId, body: &DocBuf) -> Result<DocBuf> {
    let mut lost: Option<Error> = None;
    for attempt in 1.. {
        match task.call(super::cluster::Call::new(shard, body.doc())).await {
            Err(e) if e.error.is(NETWORK | NOT_PRIMARY) && attempt < COMMITS_MAX => {
                task.op.check_interrupt()?;
                lost.get_or_insert(e.error);
                Box::pin(tokio::time::sleep(Duration::from_millis(20 << attempt))).await;
            }
            Err(e) if e.error.code == codes::NO_SUCH_TRANSACTION => return Err(lost.unwrap_or(e.error)),
            Err(e) => return Err(e.error),
            Ok(reply) => return Ok(reply),
        }
    }
    Err(err!(INTERNAL_ERROR, "no attempt at ending a transaction on {shard}"))
}

/// The reply without the members named.
pub fn without(reply: Doc<'_>, names: &[&str]) -> DocBuf {
    DocWriter::build(|w| reply.iter().filter(|e| !names.contains(&e.name())).for_each(|e| w.element(&e)))
}

/// A statement's number, as commands carry it.
pub fn statement_ids(stmt: i32) -> Value {
    Value::Array(vec![Value::Int32(stmt)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_was_deposed_confirms_nothing() {
        let outcome = |error: Option<i32>| {
            let mut reply = doc! { "ok": 1.0 };
            if let Some(code) = error {
                reply.push("writeConcernError", doc! { "code": code, "errmsg": "e" });
            }
            still_led(reply.to_doc_buf().doc()).map_err(|e| e.code)
        };
        assert_eq!(outcome(None), Ok(()));
        assert_eq!(outcome(Some(codes::WRITE_CONCERN_FAILED)), Ok(()));
        assert_eq!(outcome(Some(codes::PRIMARY_STEPPED_DOWN)), Err(codes::PRIMARY_STEPPED_DOWN));
    }
}
