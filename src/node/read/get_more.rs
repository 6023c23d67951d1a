//! getMore and killCursors.

use super::fields::Fields;
use super::rows::{Rows, dropped};
use super::tail::AWAIT_DEFAULT;
use crate::change_stream;
use crate::cursor::{Killed, Pin};
use crate::exec::Batch;
use crate::operation::ReadLevel;
use crate::request::check_collection_name;
use crate::{Node, Operation, Request};
use document::error::Phase;
use document::{DocWriter, Document, Result, Value, ValueRef, bail, doc, err};
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;

const MORE: Fields = Fields { command: "getMore" };
const KILL: Fields = Fields { command: "killCursors" };

/// A getMore's fields.
pub struct GetMore<'a> {
    pub id: i64,
    pub collection: &'a str,
    /// 0: as many as fit.
    pub batch_size: u64,
    /// How long a cursor that awaits data may wait; other cursors refuse it.
    pub await_ms: Option<u64>,
    /// The commit point that a member which follows this one knows: a later one is news too.
    pub known_commit: Option<(i64, u64)>,
}

impl<'a> GetMore<'a> {
    /// # Errors
    /// TypeMismatch (14), IDLFailedToParse (40414), 40415, InvalidNamespace (73), BadValue (2) for a time limit.
    pub fn parse(request: &Request<'a>) -> Result<GetMore<'a>> {
        let id = match request.argument() {
            Some(ValueRef::Int64(id)) => id,
            Some(ValueRef::Null) => {
                bail!(IDL_FAILED_TO_PARSE, "BSON field 'getMore.getMore' is missing but a required field")
            }
            Some(v) => bail!(
                TYPE_MISMATCH,
                "BSON field 'getMore.getMore' is the wrong type '{}', expected type 'long'",
                v.type_name()
            ),
            None => 0,
        };
        let (mut collection, mut batch_size, mut await_ms, mut known_commit) = (None, 0, None, None);
        for e in request.body.iter().skip(1) {
            match e.name() {
                "collection" | "batchSize" if e.value() == ValueRef::Null => {}
                "collection" => collection = Some(MORE.string(&e)?),
                "batchSize" => batch_size = MORE.count(&e)?,
                "term" if !matches!(e.value(), ValueRef::Null | ValueRef::Int64(_)) => {
                    return Err(MORE.wrong_type(&e, "long"));
                }
                "maxTimeMS" => {
                    await_ms = crate::shape::to_long(e.value()).and_then(|ms| u64::try_from(ms).ok())
                }
                "lastKnownCommittedOpTime" => {
                    let known = e.value().as_document().and_then(crate::replication::read_optime);
                    known_commit = known.map(|t| (t.term, t.ts));
                }
                "term" | "includeQueryStatsMetrics" => {}
                name => MORE.unknown(name)?,
            }
        }
        let collection = collection.ok_or_else(|| {
            err!(IDL_FAILED_TO_PARSE, "BSON field 'getMore.collection' is missing but a required field")
        })?;
        if !collection.starts_with("$cmd") {
            check_collection_name(request.db, collection)?;
        }
        Ok(GetMore { id, collection, batch_size, await_ms, known_commit })
    }
}

/// The error for a time limit on a cursor that does not await data.
pub fn no_time_limit() -> document::Error {
    err!(BAD_VALUE, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
}

/// Runs a `getMore` command; writes the reply's `cursor`.
pub async fn get_more(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    request: Request<'_>,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let command = GetMore::parse(&request)?;
    let ns = format!("{}.{}", request.db, command.collection);
    let mut pin = node.cursors.pin(command.id, &ns, op, node.now_ms())?;
    let streams = matches!(pin.cursor()?.rows, Rows::ChangeStream(_));
    let done = more(node, op, &command, &ns, pin, w).await;
    done.map_err(|e| if streams { change_stream::labelled(e) } else { e })
}

async fn more(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    command: &GetMore<'_>,
    ns: &str,
    mut pin: Pin<'_>,
    w: &mut DocWriter<'_>,
) -> Result<()> {
    let (id, await_ms) = (command.id, command.await_ms);
    if node.profiling.load(std::sync::atomic::Ordering::Relaxed) {
        op.profiler_notes().opened_by(pin.cursor()?.account.command.doc().to_document());
    }
    node.failpoints.pause_operation(op, "waitAfterPinningCursorBeforeGetMoreBatch", ns).await?;
    node.failpoints.fail_with_code(op, "failGetMoreAfterCursorCheckout")?;
    if await_ms.is_some() && !pin.cursor()?.rows.awaits_data() {
        pin.park(node.now_ms());
        return Err(no_time_limit());
    }
    let until = Instant::now() + await_ms.filter(|ms| *ms > 0).map_or(AWAIT_DEFAULT, Duration::from_millis);
    let cursor = pin.cursor()?;
    let reads_anew = cursor.rows.reads_anew();
    if let Some(uuid) = cursor.rows.uuid() {
        let source = cursor.rows.ns().map_or_else(|| below(node, ns), str::to_string);
        // A transaction's cursor keeps its snapshot, and the collection may be the transaction's own.
        if op.transaction().is_none() {
            resume(node, &source, uuid, &mut cursor.rows)?;
        }
    }
    if let Some(moment) = &cursor.reader {
        op.join(moment.clone());
    }
    op.begin_reading(node.past.edition());
    let mut batch = Batch::new(match command.batch_size {
        0 => usize::MAX,
        n => usize::try_from(n).unwrap_or(usize::MAX),
    });
    node.failpoints.pause_operation(op, "waitWithPinnedCursorDuringGetMoreBatch", ns).await?;
    let filled = fill(node, op, &mut cursor.rows, &mut batch, (until, command.known_commit)).await;
    filled.map_err(|e| {
        e.at(Phase::Running).while_running(|| "Executor error during getMore".to_string(), None)
    })?;
    // A linearizable batch says that this member still led. One of level majority owes only what it has read itself.
    // One that reads the past owes nothing: that was committed.
    let owes = reads_anew && !cursor.keeps_snapshot && batch.count() > 0;
    if cursor.level == ReadLevel::Linearizable || owes {
        node.await_level_committed(op, cursor.level).await?;
    }
    node.failpoints.pause_operation(op, "waitBeforeUnpinningOrDeletingCursorAfterGetMoreBatch", ns).await?;
    cursor.account.returned += batch.count() as u64;
    let token = cursor.rows.resume_token();
    let id = match cursor.rows.ended() {
        true => 0,
        false => {
            op.check_interrupt()?;
            if !pin.park(node.now_ms()) {
                bail!(CURSOR_KILLED, "cursor id {id} was killed");
            }
            id
        }
    };
    batch.write_cursor_at(w, "nextBatch", id, ns, token, None);
    Ok(())
}

/// A batch; a cursor that awaits data holds an empty one back, at most until a commit point beyond the known one.
async fn fill(
    node: &Arc<Node>,
    op: &Arc<Operation>,
    rows: &mut Rows,
    batch: &mut Batch,
    (until, known): (Instant, Option<(i64, u64)>),
) -> Result<()> {
    let mut points = node.replication.commit.subscribe();
    let mut seen = node.log.appended();
    rows.fill(node, op, batch).await?;
    while batch.count() == 0
        && Instant::now() < until
        && rows.awaits_data()
        && !rows.has_news()
        && !is_committed_beyond(node, known)
    {
        match known {
            None => rows.await_news(node, op, seen, until).await?,
            Some(_) => tokio::select! {
                news = rows.await_news(node, op, seen, until) => news?,
                _ = points.changed() => {}
            },
        }
        seen = node.log.appended();
        rows.fill(node, op, batch).await?;
    }
    Ok(())
}

/// Whether more is committed than a follower knows.
fn is_committed_beyond(node: &Node, known: Option<(i64, u64)>) -> bool {
    known.is_some_and(|known| crate::replication::order(node.committed()) > known)
}

/// The collection that a view reads which is no more than a query of it; another name stands for itself.
fn below(node: &Node, ns: &str) -> String {
    let mut ns = ns.to_string();
    while let Some(view) = &node.namespaces.slot(&ns).read_unchecked().view {
        ns = format!("{}.{}", storage::split_namespace(&ns).0, view.on);
    }
    ns
}

/// The collection must still be the one the cursor was opened on; a snapshot given back is taken again.
fn resume(node: &Node, ns: &str, uuid: [u8; 16], rows: &mut Rows) -> Result<()> {
    let slot = node.namespaces.slot(ns);
    let state = slot.read_unchecked();
    match &state.collection {
        Some(c) if c.uuid() == uuid => {
            rows.resume(c);
            Ok(())
        }
        _ => Err(dropped(uuid)),
    }
}

/// Runs a `killCursors` command.
pub fn kill_cursors(node: &Node, request: Request<'_>) -> Result<Document> {
    // The namespace is of no account: an id is enough to find a cursor.
    match request.argument() {
        Some(ValueRef::String("")) => {
            bail!(INVALID_NAMESPACE, "Invalid namespace specified '{}.'", request.db)
        }
        Some(ValueRef::String(_)) => {}
        _ => drop(request.namespace()?),
    }
    let ids = cursors_of(&request)?;
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        match node.cursors.kill(id) {
            Killed::Yes => killed.push(Value::Int64(id)),
            Killed::NotFound => missing.push(Value::Int64(id)),
        }
    }
    Ok(doc! {
        "cursorsKilled": killed, "cursorsNotFound": missing,
        "cursorsAlive": Vec::<Value>::new(), "cursorsUnknown": Vec::<Value>::new(),
    })
}

/// The ids in `cursors` of a killCursors.
///
/// # Errors
/// TypeMismatch (14), IDLFailedToParse (40414), 40415.
pub fn cursors_of(request: &Request<'_>) -> Result<Vec<i64>> {
    let mut ids = None;
    for e in request.body.iter().skip(1) {
        match e.name() {
            "cursors" => match e.value() {
                ValueRef::Array(a) => ids = Some(a),
                ValueRef::Null | ValueRef::Undefined => {}
                _ => return Err(KILL.wrong_type(&e, "array")),
            },
            name => KILL.unknown(name)?,
        }
    }
    let ids = ids.ok_or_else(|| {
        err!(IDL_FAILED_TO_PARSE, "BSON field 'killCursors.cursors' is missing but a required field")
    })?;
    let long = |e: document::Element<'_>| match e.value() {
        ValueRef::Int64(id) => Ok(id),
        v => bail!(
            TYPE_MISMATCH,
            "BSON field 'killCursors.cursors.{}' is the wrong type '{}', expected type 'long'",
            e.name(),
            v.type_name()
        ),
    };
    ids.iter().filter(|e| e.value() != ValueRef::Null).map(long).collect()
}
