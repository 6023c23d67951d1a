//! Which cluster times this node believes, and how it signs its own.
//!
//! ```text
//! request                       a member, or anybody where no users are checked: believed
//!                               no later than this node's clock: nothing to believe
//!                               else the signature must be of a key of admin.system.keys (refreshed once if it is unknown)
//! reply                         to those who are believed without proof a signature of zeros; to others a real one, or no time at all
//! ```
//! The keys are this node's own documents on a set and a config server, and the config server's on shards and routers: so a time that one
//! node of the cluster has signed is believed by all of them. `signing_keys` makes them.

use crate::connection::Connection;
use crate::dispatch::{Command, Context, Roles};
use crate::service::Service;
use arc_swap::ArcSwap;
use document::{Doc, Document, Result, Timestamp, ValueRef, bail, codes, doc, err};
use node::auth::time_proof::{KeyRing, Proof, Signature, TimeKey, covering};
use node::auth::{Action, Target};
use node::local::LocalClient;
use parking_lot::Mutex;
use runtime::Instant;
use sharding::remote::{CLOCK_DRIFT_MAX, is_too_far_ahead};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Between two looks for keys as long as there are none, and once there are some.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_secs(10 * 60);
/// Unknown keys that clients name have them looked for this often at most.
const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// The config server is given so long to say its keys: requests that bring an unknown one wait meanwhile.
const ASKED_FOR_MAX: Duration = Duration::from_secs(5);

/// The keys as this node knows them.
#[derive(Default)]
pub struct SignedTimes {
    ring: ArcSwap<KeyRing>,
    /// The last signature made, and for which times it holds.
    last: Mutex<Option<(u64, Signature)>>,
    /// Taken while keys are read; holds when that was last tried.
    refreshed: tokio::sync::Mutex<Option<Instant>>,
    /// `maxAcceptableLogicalClockDriftSecs`, which does not change while the process lives.
    drift_max: OnceLock<i64>,
}

impl SignedTimes {
    fn sign(&self, time: Timestamp) -> Option<Signature> {
        let covering = covering(time);
        let mut last = self.last.lock();
        if let Some((_, signature)) = last.filter(|(made_for, _)| *made_for == covering) {
            return Some(signature);
        }
        let signature = self.ring.load().sign(time)?;
        *last = Some((covering, signature));
        Some(signature)
    }

    /// Takes the keys that `read` finds, unless that was tried less than `pause` ago. Whoever waited for another's attempt
    /// makes none of its own.
    async fn refresh(
        &self,
        pause: Duration,
        limit: Duration,
        read: impl Future<Output = Result<Vec<Document>>>,
    ) -> Result<()> {
        let mut last = self.refreshed.lock().await;
        if last.is_some_and(|at| at.elapsed() < pause) {
            return Ok(());
        }
        let found = tokio::time::timeout(limit, read).await;
        *last = Some(Instant::now());
        let found = found.map_err(|_| err!(NETWORK_TIMEOUT, "the config server does not say its keys"))??;
        self.replace(KeyRing::new(found.iter().filter_map(TimeKey::of_stored).collect()));
        Ok(())
    }

    fn replace(&self, ring: KeyRing) {
        self.ring.store(Arc::new(ring));
        *self.last.lock() = None;
    }
}

/// Keeps the keys known, where users are checked: elsewhere everybody is believed.
pub async fn start(service: &Arc<Service>) -> Result<()> {
    if !service.auth.enabled || service.role == Roles::STANDALONE {
        return Ok(());
    }
    let own = service.clone();
    service.spawn(async move {
        loop {
            // What keeps the config server from being reached now may not in a moment.
            drop(refresh(&own, Duration::ZERO).await);
            let known = !own.signed_times.ring.load().is_empty();
            tokio::time::sleep(if known { LOOK_AGAIN } else { LOOK }).await;
        }
    });
    Ok(())
}

/// Reads the keys, unless that was tried less than `pause` ago.
async fn refresh(service: &Service, pause: Duration) -> Result<()> {
    let hmac = doc! { "purpose": "HMAC" };
    let read = async {
        match (&service.node, service.role) {
            (Some(node), Roles::REPLSET | Roles::CONFIG) => {
                LocalClient::new(node.clone()).find(crate::signing_keys::KEYS, &hmac)
            }
            _ => ask_config(service, hmac).await,
        }
    };
    service.signed_times.refresh(pause, ASKED_FOR_MAX, read).await
}

async fn ask_config(service: &Service, filter: Document) -> Result<Vec<Document>> {
    let Some(remote) = service.members.remote() else {
        bail!(NOT_YET_INITIALIZED, "the config server is not known yet")
    };
    remote.find_catalog("admin", "system.keys", filter, Document::new()).await
}

/// Whether this connection's times are believed without a proof.
fn is_trusted(service: &Service, connection: &Connection) -> bool {
    let may = |user: Arc<node::auth::User>| user.may(&Target::Cluster, Action::AdvanceClusterTime);
    !service.auth.enabled || connection.client.user().is_some_and(may)
}

/// Takes note of the time that a request brings.
///
/// # Errors
/// KeyNotFound (211), TimeProofMismatch (204), CannotVerifyAndSignLogicalTime (210) for a time that is not proven;
/// ClusterTimeFailsRateLimiter (205) for one that is too far ahead.
pub async fn accept(context: &Context, command: &Command, body: Doc<'_>) -> Result<()> {
    let service = &context.service;
    let (Some(time), Some(times)) = (context.operation.cluster_time, service.times()) else {
        return Ok(());
    };
    if times.cluster_time().is_some_and(|known| time <= known) {
        return Ok(());
    }
    if !is_trusted(service, &context.connection) {
        // A standalone node has no clock that clients could move.
        if service.role == Roles::STANDALONE {
            return Ok(());
        }
        let signature = signature(body)?;
        let before_login = !command.requires_auth && context.connection.client.user().is_none();
        if before_login && signature == Signature::NONE {
            return Ok(());
        }
        // Boxed: a client's time is rarely ahead of the node's.
        Box::pin(context.operation.interruptible(prove(service, time, &signature))).await??;
    }
    let now = crate::log::now_millis();
    let read = || service.parameters.int(CLOCK_DRIFT_MAX);
    let drift_max = service.signed_times.drift_max.get_or_init(read);
    if is_too_far_ahead(time, now, *drift_max) {
        bail!(
            CLUSTER_TIME_FAILS_RATE_LIMITER,
            "New cluster time, {}, is too far from this node's wall clock time, {}.",
            time.secs,
            now / 1000
        );
    }
    times.advance(time);
    Ok(())
}

/// `$clusterTime.signature`.
///
/// # Errors
/// NoSuchKey (4), TypeMismatch (14), BadValue (2).
fn signature(body: Doc<'_>) -> Result<Signature> {
    let given = body.get_document("$clusterTime").unwrap_or(Doc::empty());
    let missing = |field: &str| document::Error::new(4, format!("Missing expected field \"{field}\""));
    let wrong = |field: &str, expected: &str, v: ValueRef<'_>| {
        let found = v.type_name();
        err!(TYPE_MISMATCH, "\"{field}\" had the wrong type. Expected {expected}, found {found}")
    };
    let signature = match given.get("signature") {
        None => return Err(missing("signature")),
        Some(ValueRef::Document(d)) => d,
        Some(v) => return Err(wrong("signature", "object", v)),
    };
    let hash: Proof = match signature.get("hash") {
        None => return Err(missing("hash")),
        Some(ValueRef::Binary(_, bytes)) => {
            let length = bytes.len();
            bytes.try_into().map_err(|_| err!(BAD_VALUE, "Unsupported SHA1Block hash length: {length}"))?
        }
        Some(v) => return Err(wrong("hash", "binData", v)),
    };
    match signature.get("keyId") {
        None => Err(missing("keyId")),
        Some(v) => match v.as_i64() {
            Some(key_id) => Ok(Signature { hash, key_id }),
            None => Err(wrong("keyId", "long", v)),
        },
    }
}

async fn prove(service: &Service, time: Timestamp, signature: &Signature) -> Result<()> {
    let times = &service.signed_times;
    if times.ring.load().key(signature.key_id, time).is_none()
        && let Err(error) = refresh(service, REFRESH_EVERY).await
        && error.code == codes::NOT_YET_INITIALIZED
    {
        bail!(
            CANNOT_VERIFY_AND_SIGN_LOGICAL_TIME,
            "Cannot accept logicalTime: {time:?}. May not be a part of a sharded cluster"
        );
    }
    let ring = times.ring.load();
    let Some(key) = ring.key(signature.key_id, time) else {
        bail!(
            KEY_NOT_FOUND,
            "No keys found for HMAC that is valid for time: {time:?} with id: {}",
            signature.key_id
        );
    };
    if !key.has_signed(time, &signature.hash) {
        bail!(TIME_PROOF_MISMATCH, "Proof does not match the cluster time {time:?}");
    }
    Ok(())
}

/// The signature of a time in a reply on this connection; `None` where the time must not be shown.
pub fn for_reply(service: &Service, connection: Option<&Connection>, time: Timestamp) -> Option<Signature> {
    let trusted = match connection {
        Some(connection) => is_trusted(service, connection),
        None => !service.auth.enabled,
    };
    match trusted || service.role == Roles::STANDALONE {
        true => Some(Signature::NONE),
        false => service.signed_times.sign(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn those_who_wait_for_a_config_server_that_says_nothing_do_not_ask_again() {
        let times = SignedTimes::default();
        let asked = AtomicUsize::new(0);
        let ask = || {
            let read = async {
                asked.fetch_add(1, Ordering::SeqCst);
                std::future::pending().await
            };
            times.refresh(Duration::from_secs(3600), Duration::from_millis(50), read)
        };
        let (first, second, third) = tokio::join!(ask(), ask(), ask());
        assert_eq!(first.unwrap_err().code, codes::NETWORK_TIMEOUT);
        assert!(second.is_ok() && third.is_ok());
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}
