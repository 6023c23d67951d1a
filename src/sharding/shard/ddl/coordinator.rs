//! Coordinators: one of each kind of change, under its locks, as a task of its own. [`crate::driver`] has the loop.

use super::joining::{self, Entered, ended};
use super::locks::{Held, Purpose};
use super::{
    COORDINATORS, Ddl, coll_mod, convert_to_capped, create, create_indexes, drop, drop_database,
    move_primary, refine, rename, repeated, reshard, untrack,
};
use crate::driver::{self, Performer};
use document::{Document, Result, Value, bail, codes, doc};
use futures::future::BoxFuture;
use node::{Operation, Origin};
use protocol::ddl::{Event, Protocol, UNDO};
use std::sync::Arc;

/// One kind of coordinator. `state` is its document: members a phase adds are persisted with the next phase.
pub(super) trait Coordinator: Send + Sync {
    fn protocol(&self) -> &'static Protocol;
    /// Runs a phase from its beginning; it may have run before.
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>>;
    /// Takes back what the phases before the commit did, whichever of them ran.
    fn undo<'a>(&'a self, _ddl: &'a Ddl, _state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    /// Whether it ends when nobody waits for it any more. Its requests do not refuse one another.
    fn ends_with_its_clients(&self) -> bool {
        false
    }
    /// Whether a request that asks for something else than one of its kind that runs is refused, or else waits for its lock.
    fn refuses_others(&self) -> bool {
        true
    }
    /// What it takes its locks for.
    fn purpose(&self) -> Purpose {
        Purpose::Change
    }
    /// More namespaces to lock than its own.
    fn also_locks(&self, _state: &Document) -> Vec<String> {
        Vec::new()
    }
}

/// Every kind there is, found by `operationType`.
const KINDS: &[&'static dyn Coordinator] = &[
    &create::Create,
    &drop::Drop,
    &drop_database::DropDatabase,
    &rename::Rename,
    &move_primary::MovePrimary,
    &refine::Refine,
    &reshard::Reshard,
    &untrack::Untrack,
    &convert_to_capped::ConvertToCapped,
    &coll_mod::CollMod,
    &coll_mod::DropIndexes,
    &create_indexes::CreateIndexes,
];

/// The member of a coordinator's document that says that change streams know of it.
const TOLD: &str = "changeStreamsTold";

/// `_id.namespace` of a coordinator's document.
pub(super) fn namespace(state: &Document) -> &str {
    state.get_document("_id").and_then(|id| id.get_str("namespace")).unwrap_or("")
}

/// The reply to whoever asked for what a coordinator has done.
pub(super) fn reply_of(state: &Document) -> Document {
    state.get_document("reply").cloned().unwrap_or_default()
}

/// `collectionUUID` of a coordinator's document.
pub(super) fn uuid_of(state: &Document) -> Option<[u8; 16]> {
    state.get("collectionUUID").and_then(Value::as_uuid)
}

impl Ddl {
    /// Runs a coordinator of `kind` on `ns` to its end, and answers its document, with what the phases added.
    ///
    /// # Errors
    /// That of the phase that made it fail; what it did is undone then. Interrupts leave it running, unless it ends with its clients.
    pub(super) async fn coordinate(
        &self,
        op: &Operation,
        kind: &'static dyn Coordinator,
        ns: &str,
        fields: Document,
    ) -> Result<Document> {
        let mut state = doc! {
            "_id": { "namespace": ns, "operationType": kind.protocol().operation }, "recoveredFromDisk": false,
            "forwardableOpMetadata": Document::new(),
        };
        if let Some(version) = &op.received.database {
            state.push("databaseVersion", version.to_document());
        }
        let id = repeated::current();
        if let Some(id) = id {
            state.push(repeated::REQUEST_ID, Value::uuid(id));
        }
        state.push("requested", fields.clone());
        for (name, value) in fields.iter() {
            state.push(name, value.clone());
        }
        loop {
            let outcome = match self.join_or_enter(kind, ns, &fields, id)? {
                Entered::Joined(outcome) => outcome,
                Entered::After(given_up) => {
                    op.interruptible(ended(given_up)).await?;
                    continue;
                }
                Entered::First(run) => {
                    // A client that goes away while it waits for the lock wants nothing done.
                    let held = op.interruptible(self.lock(kind, &state)).await??;
                    if let Some(reply) = self.outcome_of(id)? {
                        return Ok(doc! { "reply": reply });
                    }
                    self.spawn_drive(kind, state.clone(), op.received.database, held, run)?
                }
            };
            match op.interruptible(ended(outcome)).await {
                Ok(Some(done)) => return done,
                Ok(None) => {}
                Err(e) => {
                    // A router that gives up closes its connection. What a stop interrupts, the next primary takes up.
                    let is_given_up = matches!(
                        e.code,
                        codes::CLIENT_DISCONNECT | codes::INTERRUPTED | codes::MAX_TIME_MS_EXPIRED
                    );
                    if is_given_up && kind.ends_with_its_clients() {
                        self.running.left(ns, kind.protocol().operation, &fields);
                    }
                    return Err(e);
                }
            }
        }
    }

    fn join_or_enter(
        &self,
        kind: &'static dyn Coordinator,
        ns: &str,
        fields: &Document,
        id: Option<repeated::RequestId>,
    ) -> Result<Entered> {
        self.running.join(ns, kind.protocol().operation, fields, kind.refuses_others(), id)
    }

    /// Lets a coordinator run, whatever becomes of its client.
    fn spawn_drive(
        &self,
        kind: &'static dyn Coordinator,
        state: Document,
        received: Option<protocol::version::DatabaseVersion>,
        held: Held,
        mut run: joining::Run,
    ) -> Result<joining::Outcome> {
        let (ddl, outcome) = (self.strong()?, run.outcome());
        run.begin();
        self.role.spawn(async move {
            let done = ddl.drive(kind, state, received, Event::Started, held).await;
            run.end(done);
        });
        Ok(outcome)
    }

    async fn lock(&self, kind: &'static dyn Coordinator, state: &Document) -> Result<Held> {
        let more = kind.also_locks(state);
        let mut names = vec![namespace(state)];
        names.extend(more.iter().map(String::as_str));
        let holder = format!("{} of {}", kind.protocol().operation, namespace(state));
        self.locks.take_for(kind.purpose(), &names, &holder).await
    }

    /// Takes up a coordinator whose document was found at start.
    pub(super) async fn take_up(&self, mut state: Document) -> Result<()> {
        let operation = state.get_document("_id").and_then(|id| id.get_str("operationType")).unwrap_or("");
        let Some(kind) = KINDS.iter().find(|k| k.protocol().operation == operation) else {
            bail!(UNSUPPORTED_FORMAT, "unknown DDL coordinator {operation}")
        };
        state.insert("recoveredFromDisk", true);
        let requested = state.get_document("requested").cloned().unwrap_or_default();
        // Nothing runs yet that it could join.
        let id = repeated::id_in(&state);
        let Entered::First(mut run) = self.join_or_enter(*kind, namespace(&state), &requested, id)? else {
            return Ok(());
        };
        run.begin();
        let held = self.lock(*kind, &state).await?;
        let phase = state.get_str("phase").unwrap_or("").to_string();
        let ddl = self.strong()?;
        self.role.spawn(async move {
            // A coordinator that fails now has undone what it did; the client that asked is gone.
            run.end(ddl.drive(*kind, state, None, Event::Recovered { phase: &phase }, held).await);
        });
        Ok(())
    }

    /// Has a coordinator of `kind` undo what one has left that is no more, if it is `still` there when the locks are held. It goes on
    /// until all is undone, whatever becomes of its client.
    pub(super) async fn undo_anew(
        &self,
        kind: &'static dyn Coordinator,
        mut state: Document,
        still: impl Future<Output = Result<bool>>,
    ) -> Result<Option<joining::Outcome>> {
        let mut run = match self.join_or_enter(kind, namespace(&state), &Document::new(), None)? {
            Entered::Joined(outcome) | Entered::After(outcome) => return Ok(Some(outcome)),
            Entered::First(run) => run,
        };
        let held = self.lock(kind, &state).await?;
        if !still.await? {
            return Ok(None);
        }
        run.begin();
        let (ddl, outcome) = (self.strong()?, run.outcome());
        state.insert("phase", UNDO);
        self.role.spawn(async move {
            if let Err(e) = ddl.role.local.put(COORDINATORS, &state).await {
                return run.end(Err(e));
            }
            // How what is undone had failed is the same for all.
            drop(ddl.drive(kind, state, None, Event::Recovered { phase: UNDO }, held).await);
            run.end(Ok(Document::new()));
        });
        Ok(Some(outcome))
    }

    /// Tells change streams what a coordinator has committed on a namespace: once, since its document says in the same commit that they were
    /// told.
    pub(super) async fn tell_streams(
        &self,
        state: &mut Document,
        ns: &str,
        uuid: Option<[u8; 16]>,
        note: Document,
    ) -> Result<()> {
        let (node, op) = (&self.role.node, Operation::internal());
        if state.get_bool(TOLD) != Some(true) {
            let mut told = state.clone();
            told.insert(TOLD, true);
            let (bytes, id) =
                (told.to_doc_buf(), told.get("_id").cloned().unwrap_or(Value::Null).to_holder());
            let slots = [node.namespaces.slot(ns), node.namespaces.slot(COORDINATORS)];
            let tell = |unit: &mut node::WideUnit<'_>| {
                if let Some(mut unit) = unit.on(ns) {
                    unit.note(uuid, note);
                }
                let Some(mut unit) = unit.on(COORDINATORS) else { return Ok(()) };
                let found = id.get("").and_then(|id| Some(unit.collection()?.find_id(id)?.0));
                found.map_or(Ok(()), |record| unit.replace(record, bytes.doc(), Origin::default()))
            };
            node.write_wide(&op, &slots, tell).await?;
            *state = told;
        }
        node.wait_all_committed_for(&op).await
    }

    async fn drive(
        self: Arc<Ddl>,
        kind: &'static dyn Coordinator,
        state: Document,
        received: Option<protocol::version::DatabaseVersion>,
        first: Event<'_>,
        _held: Held,
    ) -> Result<Document> {
        // The version was checked when the request came; the lock may have been waited for since.
        if let Some(version) = received {
            self.check_version(namespace(&state), version).await?;
        }
        let id = repeated::id_in(&state);
        let mut change = Change { ddl: self.clone(), kind };
        match driver::drive(&mut change, kind.protocol(), state, first).await {
            // It was to be undone, and found committed.
            Err(e) => self.outcome_of(id)?.map(|reply| doc! { "reply": reply }).ok_or(e),
            done => done,
        }
    }

    async fn check_version(&self, ns: &str, version: protocol::version::DatabaseVersion) -> Result<()> {
        let mut op = Operation::internal();
        op.received.database = Some(version);
        let db = ns.split('.').next().unwrap_or(ns);
        self.role.node.namespaces.slot(&format!("{db}.$cmd")).read(&op, |_| Ok(())).await
    }
}

/// Fail points of the real server that a coordinator passes before a phase runs: operation, phase, point.
const POINTS: &[(&str, &str, &str)] = &[
    ("movePrimary", "clone", "hangBeforeCloningData"),
    ("movePrimary", "enterCriticalSection", "hangBeforeMovePrimaryCriticalSection"),
    ("collMod_V3", "updateShards", "collModBeforeConfigServerUpdate"),
    ("dropDatabase_V2", "exitCriticalSection", "dropDatabaseCoordinatorPauseAfterConfigCommit"),
];

/// A change that this shard coordinates, under its locks.
struct Change {
    ddl: Arc<Ddl>,
    kind: &'static dyn Coordinator,
}

impl Performer for Change {
    /// The fail points `hangDdlCoordinatorBefore<Persisting|Running>_<phase>`, and the real server's of the same place: for tests
    /// that interrupt a coordinator there.
    fn pause<'a>(&'a self, step: &'static str, phase: &'a str) -> BoxFuture<'a, ()> {
        let name = format!("hangDdlCoordinatorBefore{step}_{phase}");
        let operation = self.kind.protocol().operation;
        let real = POINTS.iter().filter(move |p| step == "Running" && (p.0, p.1) == (operation, phase));
        Box::pin(async move {
            let points = &self.ddl.role.node.failpoints;
            points.pause_while_set(&name).await;
            for (_, _, point) in real {
                points.pause_while_set(point).await;
            }
        })
    }
    fn write<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        let role = &self.ddl.role;
        Box::pin(async move {
            role.persist_config_time().await?;
            role.local.put(COORDINATORS, state).await
        })
    }
    fn forget<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.ddl.forget_coordinator(state))
    }
    fn run<'a>(&'a mut self, phase: &'static str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        self.kind.run(&self.ddl, phase, state)
    }
    fn undo<'a>(&'a mut self, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        self.kind.undo(&self.ddl, state)
    }
}
