//! `config.system.sessions` is refreshed by every node, every `logicalSessionRefreshMillis`, from what its clients have done.
//!
//! ```text
//! set up     config server   its primary makes the collection, once there is a shard
//!            set             its primary makes the collection, which is an ordinary one
//!            both            give its index another expiry where their session timeout says so
//! write      sessions used since the refresh before, and those of operations that are running; then those that have
//!            ended are removed: shards and routers where the chunks are, a secondary of a set by its primary
//! cursors    end whose sessions are gone from the collection and were not used since, also those without a timeout
//! reap       what old sessions have written is forgotten once they are gone from the collection
//! ```
//! A session that nobody refreshes expires by the index, on the primary that holds it.
//!
//! Invariant: nothing depends on a refresh to be whole. A use that is written twice is written once (`$max`). What fails is put back
//! and tried at the next refresh. What a killed node knew alone expires, or is noted again by its next use on another node. A removal may
//! overtake a use of the same session, here or elsewhere: this node's next refresh writes the session again, if it was used here, and until
//! then the use itself protects its cursors.

use crate::dispatch::Roles;
use crate::service::Service;
use document::{DocBuf, Document, Result, ValueRef, bail, codes, doc};
use node::local::LocalClient;
use node::operation::{SessionId, WriteConcern};
use node::replication::MemberState;
use node::{Node, Operation, Request};
use runtime::Instant;
use sharding::routing::CatalogCache;
use sharding::sessions::{self as stored, BATCH, NS};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long a secondary waits for its primary: longer than the primary waits for a majority.
const PRIMARY_LIMIT: Duration = Duration::from_secs(20);

/// Refreshes and reaps regularly, as long as the node lives.
pub async fn run(service: Arc<Service>) {
    let every = service.parameters.int("logicalSessionRefreshMillis").max(1000).unsigned_abs();
    let is_written =
        !service.parameters.bool("disableLogicalSessionCacheRefresh") && service.role != Roles::STANDALONE;
    loop {
        tokio::time::sleep(Duration::from_millis(every)).await;
        if !is_written {
            service.sessions.forget_unused(expired_ms(&service));
            service.sessions.forget_ended();
        } else if let Err(e) = refresh(&service).await {
            let text = "Failed to refresh session cache, will try again at the next refresh interval";
            note_failure(&service, 20710, "LogicalSessionCacheRefresh", text, &e);
        }
        if let Err(e) = reap(&service, is_written).await {
            note_failure(&service, 20711, "LogicalSessionCacheReap", "Failed to reap transaction table", &e);
        }
    }
}

fn note_failure(service: &Service, id: i32, job: &str, text: &str, error: &document::Error) {
    let shown = doc! { "error": error.message.as_str(), "code": error.code };
    service.log.info("CONTROL", id, job, text, shown);
}

fn minutes_ms(service: &Service, parameter: &str) -> i64 {
    service.parameters.int(parameter).saturating_mul(60_000)
}
/// What was not used since then has expired.
fn expired_ms(service: &Service) -> i64 {
    crate::log::now_millis().saturating_sub(minutes_ms(service, "localLogicalSessionTimeoutMinutes"))
}

/// Where the sessions of this node are kept.
enum Place<'a> {
    /// On the shards.
    Cluster(&'a Arc<CatalogCache>),
    /// On the primary of its set, which it may be itself; or on a node that stands alone.
    Set(&'a Arc<Node>),
}

/// `None` for a node that writes none: an arbiter, and a config server that is no shard, whose clients are the other nodes.
///
/// # Errors
/// ShardingStateNotInitialized (203) on a shard that no cluster has taken in.
fn place(service: &Service) -> Result<Option<Place<'_>>> {
    let (members, node) = (&service.members, service.node.as_ref());
    if node.is_some_and(|node| node.replication.standing().state == MemberState::Arbiter) {
        return Ok(None);
    }
    let Some(cache) = members.cache() else { return Ok(node.map(Place::Set)) };
    match service.role {
        Roles::SHARD => drop(members.shard()?.require_identity()?),
        Roles::CONFIG if members.shard()?.identity().is_none() => return Ok(None),
        _ => {}
    }
    Ok(Some(Place::Cluster(cache)))
}

/// Writes through what is known of sessions, then ends the cursors of those that are gone.
///
/// # Errors
/// Those of making the collection and of writing to it. What was to be written is kept for the next time.
pub async fn refresh(service: &Service) -> Result<()> {
    let started = Instant::now();
    service.sessions.refresh_begins(crate::log::now_millis());
    let done = try_refresh(service).await;
    service.sessions.refresh_ends(started.elapsed());
    if done.is_err() {
        // They would expire as soon as they are written.
        service.sessions.forget_unused(expired_ms(service));
    }
    done
}

async fn try_refresh(service: &Service) -> Result<()> {
    // Nothing is written while a backup is taken.
    if service.is_locked() {
        return Ok(());
    }
    let place = place(service)?;
    // What keeps the config server from the index of one shard keeps it, as a shard, from writing its own sessions no less.
    let made = set_up(service, place.as_ref()).await;
    if service.role != Roles::CONFIG {
        made.clone()?;
    }
    note_running(service);
    let taken = service.sessions.take();
    let Some(place) = place else { return made };
    let (used, ended) = (taken.used(), taken.ended());
    let written = async {
        place.refresh(&used).await?;
        service.sessions.count_refreshed(used.len());
        place.remove(&ended).await?;
        service.sessions.count_ended(ended.len());
        Ok(())
    };
    if let Err(e) = written.await {
        service.sessions.put_back(taken);
        return Err(e);
    }
    drop(taken);
    end_cursors(service, &place, &used).await?;
    made
}

async fn set_up(service: &Service, place: Option<&Place<'_>>) -> Result<()> {
    if service.role == Roles::CONFIG && service.is_writable() {
        let config = service.members.config("refreshLogicalSessionCacheNow")?;
        config.ensure_sessions_collection().await?;
    }
    let Some(Place::Set(node)) = place else { return Ok(()) };
    if node.is_writable() {
        let minutes = service.parameters.int("localLogicalSessionTimeoutMinutes");
        return ensure_collection(node, stored::expiry_secs(minutes)).await;
    }
    // An update on the primary would make one without its index.
    match node.namespaces.slot(NS).read_unchecked().collection {
        Some(_) => Ok(()),
        None => Err(no_collection()),
    }
}

fn no_collection() -> document::Error {
    document::err!(NAMESPACE_NOT_FOUND, "{NS} does not exist")
}

/// Makes the collection of a set, or gives its index this expiry.
async fn ensure_collection(node: &Arc<Node>, seconds: i64) -> Result<()> {
    let expiry = {
        let slot = node.namespaces.slot(NS);
        let latched = slot.read_unchecked();
        let indexes = latched.collection.as_ref().map(|c| c.indexes()).unwrap_or_default();
        let index = indexes.iter().find(|index| *index.spec().key() == stored::expiry_key());
        index.map(|index| index.spec().expire_after_seconds())
    };
    match expiry {
        Some(has) if has == Some(seconds) => Ok(()),
        Some(_) => run_here(node, stored::change_expiry(seconds)).await.map(drop),
        None => {
            let options = doc! { "name": stored::EXPIRY, "expireAfterSeconds": seconds as i32 };
            let index = (stored::expiry_key(), options);
            LocalClient::new(node.clone()).ensure_collection(NS, &[index]).await
        }
    }
}

/// An operation uses its session as long as it runs.
fn note_running(service: &Service) {
    let connections = service.operations.connections();
    let operations = connections.iter().flat_map(|connection| connection.slot.operations());
    let running: Vec<SessionId> =
        operations.filter_map(|operation| Some(operation.session.as_ref()?.lsid.parent())).collect();
    service.sessions.note_running(&running, crate::log::now_millis());
}

/// Ends the cursors whose sessions are neither in the collection nor in use. `written` are those that were written just now, in order.
async fn end_cursors(service: &Service, place: &Place<'_>, written: &[(SessionId, i64)]) -> Result<()> {
    let router = service.members.router().ok();
    let mut holders = match (&service.node, router) {
        (Some(node), _) => node.cursors.sessions(),
        (None, Some(router)) => router.cursors.sessions(),
        (None, None) => BTreeSet::new(),
    };
    // Children are of servers' own transactions, and end with those.
    holders.retain(|id| id.child.is_none() && written.binary_search_by(|(w, _)| w.cmp(id)).is_err());
    if holders.is_empty() {
        return Ok(());
    }
    let gone = place.missing(holders).await?;
    let ended = |id: &SessionId| gone.contains(id) && !service.sessions.is_used(id);
    let closed = match (&service.node, router) {
        (Some(node), _) => node.cursors.kill_where(|_, session| session.is_some_and(|id| ended(&id))),
        (None, Some(router)) => router.close_cursors_of(ended),
        (None, None) => 0,
    };
    service.sessions.count_closed(closed);
    Ok(())
}

impl Place<'_> {
    /// Writes when sessions were last used.
    async fn refresh(&self, used: &[(SessionId, i64)]) -> Result<()> {
        match self {
            Place::Cluster(cache) => stored::refresh(cache, used).await,
            Place::Set(node) => {
                for batch in used.chunks(BATCH) {
                    run_in_set(node, stored::updates(batch)).await?;
                }
                Ok(())
            }
        }
    }
    async fn remove(&self, ended: &[SessionId]) -> Result<()> {
        match self {
            Place::Cluster(cache) => stored::remove(cache, ended).await,
            Place::Set(node) => {
                for batch in ended.chunks(BATCH) {
                    run_in_set(node, stored::deletes(batch)).await?;
                }
                Ok(())
            }
        }
    }
    /// Those of the sessions that the collection does not have. A secondary asks its primary: what a majority has need not be here.
    ///
    /// # Errors
    /// NamespaceNotFound (26) or NamespaceNotSharded (118) where there is no collection.
    async fn missing(&self, mut sessions: BTreeSet<SessionId>) -> Result<BTreeSet<SessionId>> {
        let node = match self {
            Place::Cluster(cache) => return stored::missing(cache, sessions).await,
            Place::Set(node) => node,
        };
        let asked: Vec<SessionId> = sessions.iter().copied().collect();
        for batch in asked.chunks(BATCH) {
            for id in found_in_set(node, batch).await? {
                sessions.remove(&id);
            }
            tokio::task::yield_now().await;
        }
        Ok(sessions)
    }
}

/// Those of the sessions that the primary's collection has.
async fn found_in_set(node: &Arc<Node>, sessions: &[SessionId]) -> Result<Vec<SessionId>> {
    let slot = node.namespaces.slot(NS);
    if !node.is_writable() {
        if slot.read_unchecked().collection.is_none() {
            return Err(no_collection());
        }
        let reply = node.run_on_primary("config", stored::find(sessions), PRIMARY_LIMIT).await?;
        return stored::found(reply.doc());
    }
    let latched = slot.read_unchecked();
    let Some(collection) = latched.collection.as_ref() else { return Err(no_collection()) };
    let is_there = |id: &&SessionId| {
        let id = id.to_document().to_doc_buf();
        collection.find_id(ValueRef::Document(id.doc())).is_some()
    };
    Ok(sessions.iter().filter(is_there).copied().collect())
}

/// Runs a command on the collection of this node's set where it is written now.
async fn run_in_set(node: &Arc<Node>, command: Document) -> Result<()> {
    let reply = match node.is_writable() {
        true => run_here(node, command).await?,
        false => node.run_on_primary("config", command, PRIMARY_LIMIT).await?,
    };
    stored::check(reply.doc())
}

/// Runs it here; returns when a majority has what it wrote, or says in the reply that it has not in time.
async fn run_here(node: &Arc<Node>, command: Document) -> Result<DocBuf> {
    let mut op = Operation::internal();
    op.write_concern = WriteConcern::parse(stored::concern().to_doc_buf().doc())?;
    let name = command.iter().next().map_or("", |(name, _)| name);
    let body = command.to_doc_buf();
    let request = Request { db: "config", body: body.doc(), sequences: &[] };
    let mut reply = match name {
        "update" => node::write::update::update(node, &op, request).await?,
        "delete" => node::write::delete::delete(node, &op, request).await?,
        "collMod" => node::ddl::collections::coll_mod(node, &op, request).await?,
        other => bail!(COMMAND_NOT_FOUND, "{other} is not for the collection of sessions"),
    };
    if let Some(error) = node.acknowledge(&op).await? {
        reply.push("writeConcernError", error);
    }
    Ok(reply.to_doc_buf())
}

/// Forgets what old sessions have written. What a client's session has written is remembered for a late repetition: for
/// `TransactionRecordMinimumLifetimeMinutes` at least, and as long as the collection has the session. Where `asks` is false, or there
/// is no collection, for the session timeout at least.
///
/// # Errors
/// Those of asking: nothing is forgotten then.
pub async fn reap(service: &Service, asks: bool) -> Result<()> {
    let started = Instant::now();
    service.sessions.reap_begins(crate::log::now_millis());
    let done = match &service.node {
        Some(node) => reap_table(service, node, asks).await,
        None => Ok(0),
    };
    service.sessions.reap_ends(started.elapsed(), *done.as_ref().unwrap_or(&0));
    done.map(drop)
}

async fn reap_table(service: &Service, node: &Arc<Node>, asks: bool) -> Result<usize> {
    let before = |parameter| node.now_ms().saturating_sub(minutes_ms(service, parameter));
    let expired_ms = before("localLogicalSessionTimeoutMinutes");
    let lifetime_ms = before("TransactionRecordMinimumLifetimeMinutes");
    let unwritten = node.sessions.reap(expired_ms);
    let mut old = node.sessions.with_old_history(lifetime_ms);
    old.retain(|id| !service.sessions.is_used(id));
    let gone = if asks { gone(service, &old).await? } else { None };
    let written = match gone {
        Some(gone) => node.sessions.reap_history(&gone, lifetime_ms),
        None => node.sessions.reap_history(&old, lifetime_ms.min(expired_ms)),
    };
    Ok(unwritten + written)
}

/// Those of the sessions that the collection does not have; `None` where there is no collection.
async fn gone(service: &Service, sessions: &BTreeSet<SessionId>) -> Result<Option<BTreeSet<SessionId>>> {
    if sessions.is_empty() {
        return Ok(None);
    }
    let asked = async {
        match place(service)? {
            Some(place) => place.missing(sessions.clone()).await.map(Some),
            None => Ok(None),
        }
    };
    let is_absent = |code| {
        [codes::NAMESPACE_NOT_FOUND, codes::NAMESPACE_NOT_SHARDED, codes::SHARDING_STATE_NOT_INITIALIZED]
            .contains(&code)
    };
    match asked.await {
        Err(e) if is_absent(e.code) => Ok(None),
        done => done,
    }
}
