//! The keys that sign cluster times, in `admin.system.keys`: made by the primary of a set that is no shard, and on a cluster by that of
//! the config server.
//!
//! ```text
//! { _id: long (a cluster time), purpose: "HMAC", key: 20 random bytes, expiresAt: timestamp }
//! ```
//! There is always a key that is valid and one that follows it, so that every node knows the next before it is used. A key lives for
//! `KeysRotationIntervalSec`, and the one that follows for as long after it.

use crate::dispatch::Roles;
use crate::service::Service;
use document::{Binary, Document, Result, Timestamp, Value, doc};
use node::Node;
use node::local::LocalClient;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const KEYS: &str = "admin.system.keys";
/// How often keys are looked at while the node is primary, at most.
const LOOK: Duration = Duration::from_secs(60 * 60);
/// After a failed write.
const AGAIN: Duration = Duration::from_secs(1);

/// Keeps keys there for as long as this node is primary.
pub async fn start(service: &Arc<Service>) -> Result<()> {
    let Some(node) =
        service.node.clone().filter(|_| service.role == Roles::REPLSET || service.role == Roles::CONFIG)
    else {
        return Ok(());
    };
    let seconds = u32::try_from(service.parameters.int("KeysRotationIntervalSec")).unwrap_or(1).max(1);
    let mut states = service.topology.subscribe();
    service.spawn(async move {
        loop {
            if states.wait_for(|state| state.membership.is_writable()).await.is_err() {
                return;
            }
            // A node that stepped down or whose log failed writes none; the next primary does.
            let made = ensure(&node, seconds).await;
            let pause = if made.is_ok() { LOOK.min(Duration::from_secs(u64::from(seconds))) } else { AGAIN };
            tokio::time::sleep(pause).await;
        }
    });
    Ok(())
}

/// Makes the keys that are missing.
async fn ensure(node: &Arc<Node>, seconds: u32) -> Result<()> {
    let client = LocalClient::new(node.clone());
    let now = node.cluster_time();
    let mut ends: Vec<Timestamp> = client
        .find(KEYS, &doc! { "purpose": "HMAC" })?
        .iter()
        .filter_map(|key| key.get("expiresAt").and_then(Value::as_timestamp))
        .filter(|end| *end > now)
        .collect();
    ends.sort_unstable();
    while ends.len() < 2 {
        let from = ends.last().map_or(now.secs, |end| end.secs);
        let end = Timestamp { secs: from.saturating_add(seconds), inc: 0 };
        client.insert(KEYS, &key(node, end)).await?;
        ends.push(end);
    }
    Ok(())
}

fn key(node: &Node, end: Timestamp) -> Document {
    let secret: [u8; 20] = runtime::random();
    doc! {
        "_id": node.log.reserve_ts() as i64,
        "purpose": "HMAC",
        "key": Value::Binary(Binary { subtype: 0, bytes: secret.to_vec() }),
        "expiresAt": end,
    }
}
