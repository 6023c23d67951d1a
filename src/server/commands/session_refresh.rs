//! What a node knows of sessions, written through to `config.system.sessions` every `logicalSessionRefreshMillis`; and the end of the
//! cursors whose sessions have expired there.
//!
//! ```text
//! config server   makes the collection, once there is a shard
//! shard, router   writes to it, wherever its chunks are
//! set             the primary writes to its own, which is an ordinary collection
//! ```
//! A session that was used since the refresh before is written anew. A cursor ends, whether or not it may time out, when its session
//! is gone from the collection and this node has not seen it used since. What fails is tried again at the next refresh.

use crate::dispatch::Roles;
use crate::service::Service;
use document::{Result, Value, ValueRef, doc};
use node::Node;
use node::local::LocalClient;
use node::operation::SessionId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A session that is in use is noted no later than this after its use.
const NOTED_WITHIN_MS: i64 = 2000;

/// Refreshes regularly, as long as the node lives. On one that is no member of a set or cluster nobody else would look.
pub async fn run(service: Arc<Service>) {
    let disabled = service.parameters.bool("disableLogicalSessionCacheRefresh");
    let alone = service.node.as_ref().is_some_and(|node| !node.is_replica_set());
    if disabled || alone {
        return;
    }
    let every = service.parameters.int("logicalSessionRefreshMillis").max(1000) as u64;
    let mut since_ms = i64::MIN;
    loop {
        tokio::time::sleep(Duration::from_millis(every)).await;
        let now_ms = runtime::now_millis();
        match refresh(&service, since_ms).await {
            Ok(()) => since_ms = now_ms - NOTED_WITHIN_MS,
            Err(e) => service.log.warning(
                "CONTROL",
                9_000_014,
                "LogicalSessionCacheRefresh",
                "Sessions could not be refreshed, and will be at the next refresh",
                doc! { "error": e.message.as_str(), "code": e.code },
            ),
        }
    }
}

/// Writes through what was used since, then ends the cursors of sessions that are gone.
async fn refresh(service: &Service, since_ms: i64) -> Result<()> {
    // A secondary's primary makes and writes the collection.
    if service.role == Roles::CONFIG && !service.is_writable() {
        return Ok(());
    }
    // Taken before: what is used from now on is noted, and found below.
    let holders = holders(service);
    write_through(service, since_ms).await?;
    // It writes none of those that it has seen itself.
    if service.role == Roles::CONFIG {
        return Ok(());
    }
    let gone = missing(service, holders).await?;
    if gone.is_empty() {
        return Ok(());
    }
    let used: BTreeSet<SessionId> = known(service, last_noted(service, since_ms)).map(|(id, _)| id).collect();
    let ended = |id: &SessionId| gone.contains(id) && !used.contains(id);
    if let Some(node) = &service.node {
        node.cursors.kill_where(|_, session| session.is_some_and(|id| ended(&id)));
    }
    if let Ok(router) = service.members.router() {
        router.close_cursors_of(ended);
    }
    Ok(())
}

/// Since when a session's use protects its cursors. What a secondary of a set alone has seen is written by nobody.
fn last_noted(service: &Service, since_ms: i64) -> i64 {
    let written = service.members.cache().is_some() || service.is_writable();
    let timeout_ms = service.parameters.int("localLogicalSessionTimeoutMinutes").saturating_mul(60_000);
    let expired = runtime::now_millis().saturating_sub(timeout_ms);
    if written { since_ms.max(expired) } else { expired }
}

/// The sessions that this node has seen used at `since_ms` or later.
fn known(service: &Service, since_ms: i64) -> impl Iterator<Item = (SessionId, i64)> + use<> {
    let all: Vec<(SessionId, i64)> = match &service.node {
        Some(node) => node.sessions.list(),
        None => service.members.routed_sessions.lock().iter().map(|(id, at)| (*id, *at)).collect(),
    };
    all.into_iter().filter(move |(_, at)| *at >= since_ms)
}

/// Writes the sessions used since to `config.system.sessions`. In a cluster the config server makes that collection, and the others
/// say so until it has. A router forgets what it has written.
///
/// # Errors
/// Those of [`sharding::sessions::refresh`], and of the node.
pub async fn write_through(service: &Service, since_ms: i64) -> Result<()> {
    let members = &service.members;
    if service.role == Roles::CONFIG {
        return members.config("refreshLogicalSessionCacheNow")?.ensure_sessions_collection().await;
    }
    let known: Vec<(SessionId, i64)> = known(service, since_ms).collect();
    if service.role == Roles::SHARD {
        members.shard()?.require_identity()?;
    }
    match (members.cache(), &service.node) {
        (Some(cache), _) => sharding::sessions::refresh(cache, &known).await?,
        (None, Some(node)) if service.is_writable() => write_here(service, node, &known).await?,
        // A secondary's primary does it.
        _ => {}
    }
    let mut routed = members.routed_sessions.lock();
    for (id, at) in known {
        if routed.get(&id) == Some(&at) {
            routed.remove(&id);
        }
    }
    Ok(())
}

/// Outside a cluster the collection is an ordinary one.
async fn write_here(service: &Service, node: &Arc<Node>, known: &[(SessionId, i64)]) -> Result<()> {
    let index = sharding::sessions::expiry_index(service.parameters.int("localLogicalSessionTimeoutMinutes"));
    let key = index.get_document("key").cloned().unwrap_or_default();
    let client = LocalClient::new(node.clone());
    client.ensure_collection(sharding::sessions::NS, &[(key, index)]).await?;
    for (id, last) in known {
        let record = doc! { "_id": id.to_document(), "lastUse": Value::DateTime(*last) };
        client.put(sharding::sessions::NS, &record).await?;
    }
    Ok(())
}

/// The clients' sessions that have cursors here.
fn holders(service: &Service) -> BTreeSet<SessionId> {
    let mut all = match &service.node {
        Some(node) => node.cursors.sessions(),
        None => service.members.router().map_or(BTreeSet::new(), |router| router.cursors.sessions()),
    };
    all.retain(|id| id.child.is_none());
    all
}

/// Those that `config.system.sessions` does not have.
async fn missing(service: &Service, mut sessions: BTreeSet<SessionId>) -> Result<BTreeSet<SessionId>> {
    if sessions.is_empty() {
        return Ok(sessions);
    }
    match (service.members.cache(), &service.node) {
        (Some(cache), _) => sharding::sessions::missing(cache, sessions).await,
        (None, Some(node)) => {
            let slot = node.namespaces.slot(sharding::sessions::NS);
            let latched = slot.read_unchecked();
            // Before there is one, nothing can have gone from it.
            let Some(stored) = latched.collection.as_ref() else { return Ok(BTreeSet::new()) };
            sessions.retain(|id| {
                let id = id.to_document().to_doc_buf();
                stored.find_id(ValueRef::Document(id.doc())).is_none()
            });
            Ok(sessions)
        }
        (None, None) => Ok(BTreeSet::new()),
    }
}
