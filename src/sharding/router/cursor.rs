//! Cursors of the router: a shard's cursor under another id, or several being merged.
//!
//! While a getMore runs it owns the cursor; the table keeps the cursor's place, so that a second getMore is refused. Whoever
//! kills the cursor meanwhile removes the place, and the first getMore closes what it cannot put back.

use super::body::{self, ArrayBuilder, Versions};
use super::change_stream::StreamCursor;
use super::cluster::{Call, Cluster};
use super::merge::Merge;
use super::task::Task;
use crate::chunk::ShardId;
use document::{DocBuf, Document, Error, Result, Timestamp, Value, bail, codes, doc, err};
use node::change_stream::labelled;
use node::cursor::{CursorMetrics, Life, Lives, OF_ROUTER, SHORT_IDLE_MS, check_session, check_transaction};
use node::memory;
use node::operation::{ApiParameters, SessionId};
use node::read::get_more::{GetMore, cursors_of, no_time_limit};
use node::read::tail::AWAIT_DEFAULT;
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most bytes of one batch.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Documents of a first batch that says no size.
pub const FIRST_BATCH: usize = 101;

/// Where the documents come from.
pub enum Kind {
    /// One shard's cursor: its batches are passed on as they are.
    Remote {
        shard: ShardId,
        id: i64,
    },
    Merge(Box<Merge>),
    /// Computed documents that are all here.
    Documents(std::collections::VecDeque<DocBuf>),
    Pipeline(Box<super::aggregate::PipelineCursor>),
    Stream(Box<StreamCursor>),
}

impl Kind {
    /// About how many bytes of results, or of what they are made of, it holds.
    fn held_bytes(&self) -> usize {
        match self {
            Kind::Remote { .. } => 0,
            Kind::Merge(merge) => merge.held_bytes(),
            Kind::Documents(documents) => documents.iter().map(|d| d.bytes().len()).sum(),
            Kind::Pipeline(pipeline) => pipeline.held_bytes(),
            Kind::Stream(stream) => stream.held_bytes(),
        }
    }
}

/// Cursors open on shards, by the namespace that those know them by.
pub type OpenOnShards = Vec<(String, Vec<(ShardId, i64)>)>;

pub struct Cursor {
    /// The name by which shards know it.
    pub ns: String,
    pub session: Option<SessionId>,
    /// The transaction in which it was opened.
    transaction: Option<i64>,
    api: ApiParameters,
    /// The connection that opened it, if it ends with that.
    connection: Option<i64>,
    pub kind: Kind,
    pub no_timeout: bool,
    /// The time at which it reads on all shards.
    read_at: Option<Timestamp>,
    /// What its batches have not used yet of the time that `maxTimeMS` gave them together.
    time_left: Option<Duration>,
}

struct Entry {
    /// Dropped with the entry.
    _life: Life,
    /// `None` while a getMore has it.
    cursor: Option<Cursor>,
    /// The name by which clients know it: a view's, where the cursor is of what is below.
    ns: String,
    session: Option<SessionId>,
    transaction: Option<i64>,
    api: ApiParameters,
    connection: Option<i64>,
    used: Instant,
    no_timeout: bool,
    /// A getMore has asked for it.
    asked: bool,
    /// What the cursor held when it came here last.
    held_bytes: usize,
}

#[derive(Default)]
pub struct CursorTable {
    entries: Mutex<BTreeMap<i64, Entry>>,
    opened: AtomicU64,
    more_than_one_batch: AtomicU64,
    timed_out: AtomicU64,
    lives: Arc<Lives>,
}

impl CursorTable {
    /// Keeps the cursor under a new id: positive and not to be guessed. The caller closes one that is refused.
    fn add(&self, cursor: Cursor) -> std::result::Result<i64, (Error, Cursor)> {
        let held_bytes = cursor.kind.held_bytes();
        let mut entries = self.entries.lock();
        if let Err(e) = check_room(&entries, &cursor, held_bytes) {
            return Err((e, cursor));
        }
        let id = loop {
            let id = runtime::random::<i64>() & i64::MAX;
            if id != 0 && !entries.contains_key(&id) {
                break id;
            }
        };
        let entry = Entry {
            _life: self.lives.begin(),
            ns: cursor.ns.clone(),
            session: cursor.session,
            transaction: cursor.transaction,
            api: cursor.api,
            connection: cursor.connection,
            used: Instant::now(),
            no_timeout: cursor.no_timeout,
            asked: false,
            held_bytes,
            cursor: Some(cursor),
        };
        entries.insert(id, entry);
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(id)
    }
    /// Lets clients know the cursor by another name. Nobody has heard of its id yet.
    pub fn rename(&self, id: i64, ns: &str) {
        if let Some(entry) = self.entries.lock().get_mut(&id) {
            entry.ns = ns.to_string();
        }
    }
    /// Takes the cursor out for a getMore.
    ///
    /// # Errors
    /// CursorNotFound (43), Unauthorized (13) for another namespace, 50799-50804 for another session or transaction,
    /// APIMismatchError (347), CursorInUse (12051).
    fn take(
        &self,
        id: i64,
        ns: &str,
        (session, transaction): (Option<SessionId>, Option<i64>),
        api: ApiParameters,
    ) -> Result<Cursor> {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(&id) else { bail!(CURSOR_NOT_FOUND, "cursor id {id} not found") };
        if entry.ns != ns {
            bail!(
                UNAUTHORIZED,
                "Requested getMore on namespace '{ns}', but cursor belongs to a different namespace {}",
                entry.ns
            );
        }
        check_session(OF_ROUTER, id, entry.session, session)?;
        check_transaction(OF_ROUTER, id, entry.transaction, transaction)?;
        api.check_cursor(entry.api)?;
        entry.used = Instant::now();
        let cursor = entry.cursor.take().ok_or_else(|| err!(12051, "cursor id {id} is already in use"))?;
        if !std::mem::replace(&mut entry.asked, true) {
            self.more_than_one_batch.fetch_add(1, Ordering::Relaxed);
        }
        Ok(cursor)
    }
    /// Puts a cursor back. The caller closes one that was killed meanwhile (237), or for which there is no room.
    fn put_back(&self, id: i64, cursor: Cursor) -> std::result::Result<(), (Error, Cursor)> {
        let held_bytes = cursor.kind.held_bytes();
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(&id) else {
            return Err((err!(CURSOR_KILLED, "cursor id {id} was killed"), cursor));
        };
        entry.held_bytes = 0;
        if let Err(e) = check_room(&entries, &cursor, held_bytes) {
            entries.remove(&id);
            return Err((e, cursor));
        }
        if let Some(entry) = entries.get_mut(&id) {
            (entry.used, entry.held_bytes, entry.cursor) = (Instant::now(), held_bytes, Some(cursor));
        }
        Ok(())
    }
    fn forget(&self, id: i64) {
        self.entries.lock().remove(&id);
    }
    /// Removes a cursor. `None`: there is none; `Some(None)`: a getMore has it, and will close it.
    fn kill(&self, id: i64, ns: &str) -> Option<Option<Cursor>> {
        let mut entries = self.entries.lock();
        entries.get(&id).filter(|e| e.ns == ns)?;
        entries.remove(&id).map(|e| e.cursor)
    }
    /// Takes out a cursor for good, which belongs to another cursor of the router from now on. No client has heard of its id.
    ///
    /// # Errors
    /// CursorKilled (237) when its session has ended meanwhile.
    pub fn claim(&self, id: i64) -> Result<Cursor> {
        let claimed = self.entries.lock().remove(&id).and_then(|e| e.cursor);
        claimed.ok_or_else(|| err!(CURSOR_KILLED, "cursor id {id} was killed"))
    }
    /// The sessions that have cursors.
    pub fn sessions(&self) -> BTreeSet<SessionId> {
        self.entries.lock().values().filter_map(|e| e.session).collect()
    }
    /// Removes the cursors that `which` chooses by session, and gives them to be closed; those that a getMore has it closes.
    pub fn remove_where(&self, which: impl Fn(Option<SessionId>) -> bool) -> Vec<Cursor> {
        self.remove(|e| which(e.session))
    }
    /// Removes the cursors that end with a connection, likewise.
    pub fn remove_of_connection(&self, connection: i64) -> Vec<Cursor> {
        self.remove(|e| e.connection == Some(connection))
    }
    /// Removes the cursors that nobody asked for so long, or not for long where memory is short, and gives them to be closed.
    pub fn remove_idle(&self, most: Duration) -> Vec<Cursor> {
        let most = match memory::is_short() {
            true => most.min(Duration::from_millis(SHORT_IDLE_MS.unsigned_abs())),
            false => most,
        };
        let now = Instant::now();
        let idle =
            |e: &Entry| e.cursor.is_some() && !e.no_timeout && now.saturating_duration_since(e.used) >= most;
        let removed = self.remove(idle);
        self.timed_out.fetch_add(removed.len() as u64, Ordering::Relaxed);
        removed
    }
    fn remove(&self, which: impl Fn(&Entry) -> bool) -> Vec<Cursor> {
        let mut entries = self.entries.lock();
        let chosen: Vec<i64> = entries.iter().filter(|(_, e)| which(e)).map(|(id, _)| *id).collect();
        chosen.into_iter().filter_map(|id| entries.remove(&id)?.cursor).collect()
    }
    pub fn metrics(&self) -> CursorMetrics {
        let entries = self.entries.lock();
        let count = |which: fn(&Entry) -> bool| entries.values().filter(|e| which(e)).count() as u64;
        CursorMetrics {
            open: entries.len() as u64,
            pinned: count(|e| e.cursor.is_none()),
            no_timeout: count(|e| e.no_timeout),
            timed_out: self.timed_out.load(Ordering::Relaxed),
            total_opened: self.opened.load(Ordering::Relaxed),
            more_than_one_batch: self.more_than_one_batch.load(Ordering::Relaxed),
            lives: self.lives.counts(),
        }
    }
    /// Whether the cursor is a change stream that no getMore has taken.
    pub fn is_stream(&self, id: i64) -> bool {
        let entries = self.entries.lock();
        entries.get(&id).and_then(|e| e.cursor.as_ref()).is_some_and(|c| matches!(c.kind, Kind::Stream(_)))
    }
    /// How long the next batch may take. One that awaits data is told so with each getMore.
    pub fn time_left(&self, id: i64) -> Option<Duration> {
        self.entries.lock().get(&id)?.cursor.as_ref()?.time_left
    }
    pub fn contains(&self, id: i64) -> bool {
        self.entries.lock().contains_key(&id)
    }
    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Refuses a cursor that would keep `bytes` beside what the others keep. A change stream is no result that could be asked for again: it
/// counts, and is not refused.
fn check_room(entries: &BTreeMap<i64, Entry>, cursor: &Cursor, bytes: usize) -> Result<()> {
    if !memory::is_short() || matches!(cursor.kind, Kind::Stream(_)) {
        return Ok(());
    }
    let others: usize = entries.values().map(|e| e.held_bytes).sum();
    memory::check_routed_cursor(bytes, others + bytes, entries.len())
}

impl Cursor {
    pub fn new(task: &Task<'_>, ns: &str, kind: Kind) -> Cursor {
        let (session, transaction) = owner(task);
        let client = &task.op.client;
        let connection = client.balanced.then_some(client.connection_id);
        let no_timeout = task.body().get_bool("noCursorTimeout").unwrap_or(false);
        let (ns, read_at, api) = (ns.to_string(), task.read_at(), task.op.api);
        Cursor { ns, session, transaction, api, connection, kind, no_timeout, read_at, time_left: None }
            .timed(task)
    }
    /// The same with the time that the task has left.
    fn timed(self, task: &Task<'_>) -> Cursor {
        let awaits = matches!(self.kind, Kind::Stream(_)) || task.body().get_bool("awaitData") == Some(true);
        Cursor { time_left: task.op.time_left().filter(|_| !awaits), ..self }
    }
    /// Keeps it for the client's next getMore; its new id.
    ///
    /// # Errors
    /// ExceededMemoryLimit (146) where memory is short and it would take much of it. It is closed then.
    pub fn keep(self, task: &Task<'_>) -> Result<i64> {
        task.router.cursors.add(self).map_err(|(e, cursor)| {
            cursor.close(&task.router.cluster);
            e
        })
    }
    /// Closes what is open on shards, in the background.
    pub fn close(self, cluster: &Arc<dyn Cluster>) {
        for (ns, open) in self.into_open() {
            kill_on_shards(cluster, &ns, open);
        }
    }
    /// As [`Cursor::close`], returning when the shards have answered.
    pub async fn close_now(self, cluster: &Arc<dyn Cluster>) {
        let kills = self.into_open().into_iter().flat_map(|(ns, open)| kills(&ns, open));
        futures::future::join_all(kills.map(|(shard, body)| kill(cluster.clone(), shard, body))).await;
    }
    pub fn into_open(self) -> OpenOnShards {
        let open = match self.kind {
            Kind::Remote { shard, id } => vec![(shard, id)],
            Kind::Merge(merge) => merge.open_cursors(),
            Kind::Pipeline(pipeline) => return pipeline.into_open(self.ns),
            Kind::Stream(stream) => stream.open_cursors(),
            Kind::Documents(_) => Vec::new(),
        };
        vec![(self.ns, open)]
    }
    /// About how many bytes of results, or of what they are made of, it holds.
    pub fn held_bytes(&self) -> usize {
        self.kind.held_bytes()
    }
    /// The next documents for a pipeline that runs here; none at the end. A cursor that is read so is read in no other way.
    pub async fn next_documents(&mut self, task: &Task<'_>) -> Result<Vec<DocBuf>> {
        if let Kind::Remote { shard, id } = &self.kind {
            self.kind = Kind::Merge(Box::new(Merge::rest_of(&self.ns, shard.clone(), *id)));
        }
        match &mut self.kind {
            Kind::Merge(merge) => merge.next_documents(task).await,
            Kind::Pipeline(pipeline) => pipeline.next_documents(task).await,
            Kind::Documents(documents) => Ok(std::mem::take(documents).into()),
            Kind::Remote { .. } | Kind::Stream(_) => {
                bail!(INTERNAL_ERROR, "a change stream of {} is no part of another pipeline", self.ns)
            }
        }
    }
}

/// Closes shard cursors in the background; a shard that cannot be reached forgets them in time by itself.
pub fn kill_on_shards(cluster: &Arc<dyn Cluster>, ns: &str, open: Vec<(ShardId, i64)>) {
    for (shard, body) in kills(ns, open) {
        runtime::spawn(kill(cluster.clone(), shard, body));
    }
}

/// A killCursors for each open cursor.
fn kills(ns: &str, open: Vec<(ShardId, i64)>) -> impl Iterator<Item = (ShardId, DocBuf)> + use<> {
    let (db, collection) = ns.split_once('.').unwrap_or((ns, ""));
    let (db, collection) = (db.to_string(), collection.to_string());
    open.into_iter().filter(|(_, id)| *id != 0).map(move |(shard, id)| {
        let ids = Value::Array(vec![Value::Int64(id)]);
        let body = doc! { "killCursors": collection.as_str(), "cursors": ids, "$db": db.as_str() };
        (shard, body.to_doc_buf())
    })
}

async fn kill(cluster: Arc<dyn Cluster>, shard: ShardId, body: DocBuf) {
    let _ = cluster.call(Call::new(&shard, body.doc())).await;
}

/// Passes a shard's first or next batch on, its cursor kept under an id of the router's.
///
/// # Errors
/// As [`Cursor::keep`].
pub fn adopt(task: &Task<'_>, ns: &str, shard: &ShardId, reply: DocBuf) -> Result<DocBuf> {
    let id = body::cursor_id(reply.doc());
    if id == 0 {
        return Ok(reply);
    }
    let ours = Cursor::new(task, ns, Kind::Remote { shard: shard.clone(), id }).keep(task)?;
    let mut bytes = reply.into_bytes();
    body::patch_cursor_id(&mut bytes, ours);
    Ok(DocBuf::from_validated(bytes))
}

/// The reply with the first batch of a cursor made here; keeps the cursor if it has more.
pub async fn first_batch(task: &Task<'_>, ns: &str, kind: Kind, batch_size: Option<usize>) -> Result<DocBuf> {
    if let Some(v) = task.get("singleBatch").filter(|v| v.as_bool().is_none() && !v.is_number()) {
        return Err(document::wrong_types(
            &format!("{}.singleBatch", task.request.name()),
            v.type_name(),
            "[bool, long, int, decimal, double]",
        ));
    }
    let mut cursor = Cursor::new(task, ns, kind);
    let mut batch = ArrayBuilder::default();
    let more = match cursor.fill(task, &mut batch, batch_size.unwrap_or(FIRST_BATCH), Instant::now()).await {
        Ok(more) => more,
        Err(e) => {
            cursor.close(&task.router.cluster);
            return Err(e);
        }
    };
    let single_batch = task.body().get_bool("singleBatch").unwrap_or(false);
    let id = match more {
        true if single_batch => {
            cursor.close(&task.router.cluster);
            0
        }
        true => cursor.timed(task).keep(task)?,
        false => 0,
    };
    Ok(body::cursor_reply("firstBatch", &batch, id, ns))
}

impl Cursor {
    /// Adds up to `documents_max` documents, a change stream waiting for the first; whether there can be more.
    async fn fill(
        &mut self,
        task: &Task<'_>,
        batch: &mut ArrayBuilder,
        documents_max: usize,
        until: Instant,
    ) -> Result<bool> {
        match &mut self.kind {
            Kind::Stream(stream) => stream.fill(task, batch, documents_max, until).await,
            Kind::Merge(merge) => merge.fill(task, batch, documents_max).await,
            Kind::Pipeline(pipeline) => pipeline.fill(task, batch, documents_max).await,
            Kind::Documents(documents) => {
                while let Some(next) = documents.front().filter(|_| batch.len() < documents_max) {
                    if !batch.is_empty() && batch.byte_len() + next.bytes().len() > BATCH_BYTES_MAX {
                        break;
                    }
                    batch.push(next.doc());
                    documents.pop_front();
                }
                Ok(!documents.is_empty())
            }
            Kind::Remote { .. } => Ok(false),
        }
    }
}

/// The session and the transaction to which the task's cursors belong.
fn owner(task: &Task<'_>) -> (Option<SessionId>, Option<i64>) {
    let session = task.op.session.as_ref();
    (session.map(|s| s.lsid), session.filter(|_| task.in_transaction()).and_then(|s| s.txn_number))
}

/// `getMore`.
pub async fn get_more(task: &Task<'_>) -> Result<DocBuf> {
    let GetMore { id, collection, batch_size, await_ms, .. } = GetMore::parse(&task.request)?;
    let ns = format!("{}.{collection}", task.db());
    let batch_size = usize::try_from(batch_size).ok().filter(|n| *n > 0);
    let mut cursor = task.router.cursors.take(id, &ns, owner(task), task.op.api)?;
    if let Kind::Remote { shard, id: theirs } = &cursor.kind {
        let (shard, theirs) = (shard.clone(), *theirs);
        return pass_on(task, id, &ns, &shard, theirs, cursor).await;
    }
    let streams = matches!(cursor.kind, Kind::Stream(_));
    if await_ms.is_some() && !streams {
        // Nothing else that is put together here awaits data.
        let _ = keep(task, id, cursor);
        return Err(no_time_limit());
    }
    cursor.read_at.iter().for_each(|time| task.set_read_at(*time));
    let until = Instant::now() + await_ms.map_or(AWAIT_DEFAULT, Duration::from_millis);
    let mut batch = ArrayBuilder::default();
    let filled = cursor.fill(task, &mut batch, batch_size.unwrap_or(usize::MAX), until).await;
    let token = match &cursor.kind {
        Kind::Stream(stream) => Some(stream.token()),
        _ => None,
    };
    match filled {
        Ok(true) => {
            keep(task, id, cursor)?;
            Ok(body::stream_reply("nextBatch", &batch, id, &ns, token.as_ref()))
        }
        Ok(false) => {
            task.router.cursors.forget(id);
            Ok(body::stream_reply("nextBatch", &batch, 0, &ns, token.as_ref()))
        }
        Err(e) => {
            task.router.cursors.forget(id);
            cursor.close(&task.router.cluster);
            Err(if streams { labelled(e) } else { e })
        }
    }
}

/// Keeps a cursor for the next getMore.
///
/// # Errors
/// CursorKilled (237) when it was killed while it ran, and those of [`Cursor::keep`]; it is closed then.
fn keep(task: &Task<'_>, id: i64, cursor: Cursor) -> Result<()> {
    task.router.cursors.put_back(id, cursor.timed(task)).map_err(|(e, cursor)| {
        cursor.close(&task.router.cluster);
        e
    })
}

/// Closes a cursor of the router's own that will not be read to its end.
pub fn close(task: &Task<'_>, id: i64, ns: &str) {
    if let Some(Some(cursor)) = task.router.cursors.kill(id, ns) {
        cursor.close(&task.router.cluster);
    }
}

/// A getMore of the shard's cursor, which may be known there by another name than `ns`.
async fn pass_on(
    task: &Task<'_>,
    id: i64,
    ns: &str,
    shard: &ShardId,
    theirs: i64,
    cursor: Cursor,
) -> Result<DocBuf> {
    let collection = cursor.ns.split_once('.').map_or("", |(_, collection)| collection);
    let body = document::DocWriter::build(|w| {
        w.i64("getMore", theirs);
        w.string("collection", collection);
        let rest = task.forward(&["getMore", "collection"], &Versions::NONE, |_| {});
        w.fields_of(rest.doc());
    });
    let renamed = |reply: DocBuf| match cursor.ns == ns {
        true => reply,
        false => body::renamed_cursor(reply.doc(), ns),
    };
    // A lost reply takes its batch with it, so this is never sent twice.
    match task.call(Call::new(shard, body.doc())).await.map(renamed) {
        Ok(reply) if body::cursor_id(reply.doc()) == 0 => {
            task.router.cursors.forget(id);
            Ok(reply)
        }
        Ok(reply) => {
            keep(task, id, cursor)?;
            let mut bytes = reply.into_bytes();
            body::patch_cursor_id(&mut bytes, id);
            Ok(DocBuf::from_validated(bytes))
        }
        // The shard refused the request and keeps its cursor.
        Err(e) if e.error.code == codes::BAD_VALUE => {
            let _ = keep(task, id, cursor);
            Err(e.error)
        }
        Err(e) if e.error.code == codes::CURSOR_NOT_FOUND => {
            task.router.cursors.forget(id);
            bail!(CURSOR_NOT_FOUND, "cursor id {id} not found")
        }
        Err(e) => {
            task.router.cursors.forget(id);
            cursor.close(&task.router.cluster);
            Err(e.error)
        }
    }
}

/// A size field: absent, or an integer from 0.
///
/// # Errors
/// TypeMismatch (14), BadValue (2) for a negative one.
pub fn size(task: &Task<'_>, name: &str) -> Result<Option<usize>> {
    let command = task.request.name();
    match task.get(name) {
        None => Ok(None),
        Some(v) if v.is_number() => {
            let n = v.as_i64().or_else(|| v.as_f64().map(|f| f as i64)).unwrap_or(0);
            usize::try_from(n)
                .map(Some)
                .map_err(|_| err!(BAD_VALUE, "BSON field '{name}' value must be >= 0, actual value '{n}'"))
        }
        Some(v) => Err(document::wrong_types(
            &format!("{command}.{name}"),
            v.type_name(),
            "[long, int, decimal, double]",
        )),
    }
}

/// `killCursors`.
pub async fn kill_cursors(task: &Task<'_>) -> Result<DocBuf> {
    let ns = task.request.namespace()?;
    let ids = cursors_of(&task.request)?;
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in ids {
        match task.router.cursors.kill(id, &ns) {
            Some(cursor) => {
                if let Some(cursor) = cursor {
                    cursor.close(&task.router.cluster);
                }
                killed.push(Value::Int64(id));
            }
            None => not_found.push(Value::Int64(id)),
        }
    }
    let mut reply = Document::new();
    reply.push("cursorsKilled", Value::Array(killed));
    reply.push("cursorsNotFound", Value::Array(not_found));
    reply.push("cursorsAlive", Value::Array(Vec::new()));
    reply.push("cursorsUnknown", Value::Array(Vec::new()));
    Ok(body::ok_reply(reply))
}
