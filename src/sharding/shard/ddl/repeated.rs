//! Requests that routers repeat.
//!
//! A router gives each change that it asks for a name of its own. Where the primary that it asked steps down or dies, it asks the next
//! one under that name: for the outcome of the coordinator that goes on there, or has ended there.
//!
//! ```text
//! config.system.sharding_ddl_outcomes   { _id: UUID of the request, at: date, db, reply }      DO NOT CHANGE
//!                                       { _id: UUID of the request, at: date, db, renames: UUID }   of a rename without coordinator
//!                                       { _id: UUID of the request, at: date, db, drops: UUID, indexes: n }   likewise of a drop
//! ```
//! They move with their database: its next primary is asked from then on.
//!
//! Invariant: the outcome of a coordinator that has done its work is written in the commit that removes its document. One that failed has left
//! nothing, and its request may run anew.

use super::commands::answer;
use super::coordinator::{namespace, reply_of};
use super::joining::ended;
use super::{COORDINATORS, Ddl, split};
use crate::remote::Target;
use document::{Doc, DocBuf, DocWriter, Document, Result, Value, doc};
use node::write::unit::BatchWrite;
use node::{Operation, Request};
use protocol::ddl::UNDO;
use std::time::Duration;

/// The member of requests and of coordinators' documents that names a request.
pub(crate) const REQUEST_ID: &str = "requestId";
pub(super) type RequestId = [u8; 16];

/// Where outcomes are kept.
pub(crate) const OUTCOMES: &str = "config.system.sharding_ddl_outcomes";
/// For how long: a router that repeats does so at once.
const KEPT: Duration = Duration::from_secs(600);

tokio::task_local! {
    /// The request that this task answers.
    static CURRENT: RequestId;
}

pub(super) fn current() -> Option<RequestId> {
    CURRENT.try_with(|id| *id).ok()
}
pub(super) fn id_in(state: &Document) -> Option<RequestId> {
    state.get(REQUEST_ID).and_then(Value::as_uuid)
}
fn without_id(body: Doc<'_>) -> DocBuf {
    DocWriter::build(|w| body.iter().filter(|e| e.name() != REQUEST_ID).for_each(|e| w.element(&e)))
}

impl Ddl {
    /// Answers a request, once: a repetition is given the outcome of what it has begun before.
    pub(super) async fn answer_once(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let Some(id) = request.body.get(REQUEST_ID).and_then(|v| v.as_uuid()) else {
            return answer(self, op, request).await;
        };
        while let Some(outcome) = self.running.begun_by(id) {
            if let Some(done) = op.interruptible(ended(outcome)).await? {
                return done.map(|state| reply_of(&state));
            }
        }
        if let Some(reply) = self.outcome_of(Some(id))? {
            return Ok(reply);
        }
        let body = without_id(request.body);
        CURRENT.scope(id, answer(self, op, Request { body: body.doc(), ..request })).await
    }

    /// The reply to a request whose coordinator has done its work.
    pub(super) fn outcome_of(&self, id: Option<RequestId>) -> Result<Option<Document>> {
        let found = self.noted(id)?;
        Ok(found.filter(|found| found.contains_key("reply")).map(|found| reply_of(&found)))
    }
    /// What is noted of a request.
    fn noted(&self, id: Option<RequestId>) -> Result<Option<Document>> {
        match id {
            Some(id) => self.role.local.find_one(OUTCOMES, &doc! { "_id": Value::uuid(id) }),
            None => Ok(None),
        }
    }

    /// Notes which collection the request is about to rename here, in one step: so a repetition can tell whether that has happened.
    pub(super) async fn note_renaming(&self, ns: &str) -> Result<()> {
        match self.uuid_here(ns) {
            Some(uuid) => self.note_intent(ns, doc! { "renames": Value::uuid(uuid) }).await,
            None => Ok(()),
        }
    }
    /// Likewise which one it is about to drop, with so many indexes.
    pub(super) async fn note_dropping(&self, ns: &str, uuid: [u8; 16], indexes: usize) -> Result<()> {
        self.note_intent(ns, doc! { "drops": Value::uuid(uuid), "indexes": indexes as i64 }).await
    }
    /// Nobody waits for it: it comes before the change in the log, so whoever leads next and has the change has the note.
    async fn note_intent(&self, ns: &str, what: Document) -> Result<()> {
        let Some(id) = current() else { return Ok(()) };
        let at = Value::DateTime(self.role.node.now_ms());
        let mut intent = doc! { "_id": Value::uuid(id), "at": at, "db": split(ns).0 };
        intent.0.extend(what.0);
        self.ensure_outcomes().await?;
        let put = BatchWrite::Put { ns: OUTCOMES.to_string(), doc: intent };
        self.role.node.commit_batch(&Operation::internal(), &[put]).await.map(drop)
    }
    /// Which collection an attempt before was about to drop, and how many indexes it had.
    pub(super) fn dropping(&self) -> Result<Option<([u8; 16], usize)>> {
        let noted = self.noted(current())?;
        Ok(noted.and_then(|found| {
            let indexes = found.get_i64("indexes").and_then(|n| usize::try_from(n).ok());
            Some((found.get("drops")?.as_uuid()?, indexes?))
        }))
    }
    /// Whether an attempt before has given its collection this name.
    pub(super) fn has_renamed(&self, to: &str) -> Result<bool> {
        let renamed = self.noted(current())?.and_then(|found| found.get("renames").and_then(Value::as_uuid));
        Ok(renamed.is_some() && renamed == self.uuid_here(to))
    }

    /// Notes the outcome of a coordinator that was to undo what it had begun, and has found it committed: before its document goes.
    pub(super) async fn note_committed(&self, state: &Document) -> Result<()> {
        let Some(request) = id_in(state) else { return Ok(()) };
        self.ensure_outcomes().await?;
        self.role.local.put(OUTCOMES, &self.outcome(request, state)).await
    }
    /// Makes the collection of outcomes, which expire by themselves.
    async fn ensure_outcomes(&self) -> Result<()> {
        let expiry = (doc! { "at": 1 }, doc! { "expireAfterSeconds": KEPT.as_secs() as i64 });
        self.role.local.ensure_collection(OUTCOMES, &[expiry]).await
    }
    fn outcome(&self, request: RequestId, state: &Document) -> Document {
        let at = Value::DateTime(self.role.node.now_ms());
        let db = split(namespace(state)).0;
        doc! { "_id": Value::uuid(request), "at": at, "db": db, "reply": reply_of(state) }
    }

    /// Brings what has ended on the shard that a database comes from. No change of it is under way there.
    pub(super) async fn bring_outcomes(&self, donor: &str, db: &str) -> Result<()> {
        let (internal, name) = split(OUTCOMES);
        let of_database = doc! { "db": db };
        let found =
            self.role.remote.find(Target::Host(donor), internal, name, of_database, Document::new()).await?;
        if found.is_empty() {
            return Ok(());
        }
        self.ensure_outcomes().await?;
        let put = |doc: Document| BatchWrite::Put { ns: OUTCOMES.to_string(), doc };
        let writes: Vec<BatchWrite> = found.into_iter().map(put).collect();
        let op = Operation::internal();
        self.role.node.commit_batch(&op, &writes).await?;
        self.role.node.wait_operation_committed(&op).await
    }

    /// Removes the document of a coordinator that has ended.
    pub(super) async fn forget_coordinator(&self, state: &Document) -> Result<()> {
        let (local, node) = (&self.role.local, &self.role.node);
        let id = state.get("_id").cloned().unwrap_or(Value::Null);
        let request = id_in(state).filter(|_| state.get_str("phase") != Some(UNDO));
        let Some(request) = request else {
            return local.delete(COORDINATORS, &doc! { "_id": { "$eq": id } }).await.map(drop);
        };
        self.ensure_outcomes().await?;
        let writes = [
            BatchWrite::Put { ns: OUTCOMES.to_string(), doc: self.outcome(request, state) },
            BatchWrite::Delete { ns: COORDINATORS.to_string(), id },
        ];
        let op = Operation::internal();
        node.commit_batch(&op, &writes).await?;
        node.wait_operation_committed(&op).await
    }
}
