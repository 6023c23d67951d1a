//! Migrations of this shard: what runs, and the drivers of the machines in `protocol::migration`.
//!
//! A shard takes part in one migration at a time, as donor or as recipient. A request for the migration that already
//! runs joins it; any other is refused.

pub mod changelog;
pub mod donor;
pub mod range;
pub mod recipient;
pub mod recovery;
pub mod request;
pub mod sessions;
pub mod source;

pub use donor::Donation;
pub use recipient::Reception;
pub use request::{Coordinator, MoveRange, throttle_of};

use document::{Document, Result, Value, bail, doc};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::watch;

pub const COORDINATORS: &str = "config.migrationCoordinators";
pub const RECIPIENTS: &str = "config.migrationRecipients";

#[derive(Default)]
struct Active {
    donation: Option<Arc<Donation>>,
    reception: Option<Arc<Reception>>,
    /// The newest reception that ended: a donor may still ask why.
    last_reception: Option<Arc<Reception>>,
    /// Namespaces of migrations that are being recovered.
    recovering: Vec<String>,
    /// The cluster stands still: none begins.
    held: bool,
}

/// What runs now.
pub struct Migrations {
    active: Mutex<Active>,
    changed: watch::Sender<u64>,
}

impl Default for Migrations {
    fn default() -> Self {
        Migrations { active: Mutex::default(), changed: watch::Sender::new(0) }
    }
}

impl Migrations {
    /// Registers a donation, or joins the one that runs with the same arguments (`false`).
    ///
    /// # Errors
    /// ConflictingOperationInProgress (117).
    pub(crate) fn donate(&self, request: MoveRange) -> Result<(Arc<Donation>, bool)> {
        let mut active = self.active.lock();
        if let Some(running) = &active.donation {
            if running.request == request {
                return Ok((running.clone(), false));
            }
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Unable to start new balancer operation because this shard is currently donating range of {} to {}",
                running.request.ns,
                running.request.to
            );
        }
        active.refuse_while_held()?;
        active.refuse_while_receiving()?;
        let donation = Arc::new(Donation::new(request));
        active.donation = Some(donation.clone());
        Ok((donation, true))
    }
    /// # Errors
    /// ConflictingOperationInProgress (117).
    pub(crate) fn receive(&self, reception: Arc<Reception>) -> Result<()> {
        let mut active = self.active.lock();
        active.refuse_while_held()?;
        active.refuse_while_receiving()?;
        if let Some(running) = &active.donation {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Unable to start new balancer operation because this shard is currently donating range of {} to {}",
                running.request.ns,
                running.request.to
            );
        }
        active.reception = Some(reception);
        Ok(())
    }
    /// Removes this one, unless a later reign has begun another.
    pub(crate) fn donation_ended(&self, ended: &Arc<Donation>) {
        self.active.lock().donation.take_if(|running| Arc::ptr_eq(running, ended));
        self.note_change();
    }
    /// Likewise; the last one that has ended can still be asked for.
    pub(crate) fn reception_ended(&self, ended: &Arc<Reception>) {
        {
            let mut active = self.active.lock();
            if let Some(reception) = active.reception.take_if(|running| Arc::ptr_eq(running, ended)) {
                active.last_reception = Some(reception);
            }
        }
        self.note_change();
    }
    pub(crate) fn recovery_begins(&self, ns: &str) {
        self.active.lock().recovering.push(ns.to_string());
        self.note_change();
    }
    pub(crate) fn recovery_ended(&self, ns: &str) {
        {
            let recovering = &mut self.active.lock().recovering;
            if let Some(at) = recovering.iter().position(|r| r == ns) {
                recovering.swap_remove(at);
            }
        }
        self.note_change();
    }
    /// Forgets what ran: its tasks were ended.
    pub(crate) fn abandon(&self) {
        *self.active.lock() = Active::default();
        self.note_change();
    }
    fn note_change(&self) {
        self.changed.send_modify(|n| *n += 1);
    }
    pub fn donation(&self) -> Option<Arc<Donation>> {
        self.active.lock().donation.clone()
    }
    pub fn reception(&self) -> Option<Arc<Reception>> {
        self.active.lock().reception.clone()
    }
    /// The reception of this session, running or just ended.
    pub(crate) fn reception_of(&self, session: &str) -> Option<Arc<Reception>> {
        let active = self.active.lock();
        let known = [&active.reception, &active.last_reception];
        known.into_iter().flatten().find(|r| r.start.session_id == session).cloned()
    }
    /// Waits until nothing runs, recoveries included.
    pub async fn join(&self) {
        self.join_those(|_| true).await;
    }
    /// Ends what moves ranges of this namespace from or to this shard, and waits until it has ended. What has not begun to
    /// commit gives way; the rest is waited for, recoveries included.
    pub async fn stop(&self, ns: &str) {
        self.end(|other| other == ns).await;
    }
    /// From here on no migration begins. Those under way end as by [`Migrations::stop`]; none is when this returns.
    pub(crate) fn hold(&self) {
        self.active.lock().held = true;
    }
    /// Ends all that are under way.
    pub(crate) async fn end_all(&self) {
        self.end(|_| true).await;
    }
    /// Takes [`Migrations::hold`] back.
    pub(crate) fn let_go(&self) {
        self.active.lock().held = false;
    }
    /// Waits until nothing runs on namespaces that satisfy `concerns`.
    async fn join_those(&self, concerns: impl Fn(&str) -> bool) {
        let mut changes = self.changed.subscribe();
        while self.active.lock().namespaces().any(&concerns) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
    /// Ends a donation that has not begun to commit and a reception that does not hold everything yet, whose donor learns of it
    /// when it asks next, of namespaces that satisfy `concerns`; waits for the rest.
    async fn end(&self, concerns: impl Fn(&str) -> bool) {
        if let Some(donation) = self.donation().filter(|d| concerns(&d.request.ns)) {
            donation.cancel();
        }
        if let Some(reception) = self.reception().filter(|r| concerns(&r.start.ns)) {
            reception.give_way();
        }
        self.join_those(concerns).await;
    }

    /// `serverStatus.sharding.migrations` and `shardingState`: what runs, or empty.
    pub fn status(&self) -> Document {
        if let Some(d) = self.donation() {
            return doc! {
                "source": d.request.from.as_str(), "destination": d.request.to.as_str(), "isDonorShard": true,
                "chunk": { "min": d.request.min.clone().unwrap_or_default(), "max": d.request.max.clone().unwrap_or_default() },
                "collection": d.request.ns.as_str(), "step": d.step(),
            };
        }
        match self.reception() {
            Some(r) => doc! {
                "source": r.start.from.as_str(), "destination": r.start.to.as_str(), "isDonorShard": false,
                "chunk": { "min": r.start.min.clone(), "max": r.start.max.clone() },
                "collection": r.start.ns.as_str(), "state": r.state().name(),
            },
            None => Document::new(),
        }
    }
    /// Entries for `currentOp`.
    pub fn current_operations(&self) -> Vec<Document> {
        let mut all = Vec::new();
        if let Some(d) = self.donation() {
            all.push(doc! {
                "type": "op", "desc": "MoveChunk", "active": true, "ns": d.request.ns.as_str(), "op": "command",
                "msg": format!("step {} of 6", d.step()), "from": d.request.from.as_str(), "to": d.request.to.as_str(),
            });
        }
        if let Some(r) = self.reception() {
            all.push(doc! {
                "type": "op", "desc": "migrateThread", "active": true, "ns": r.start.ns.as_str(), "op": "none",
                "msg": format!("step {} of 7", r.step()), "from": r.start.from.as_str(), "to": r.start.to.as_str(),
                "clonedBytes": r.cloned_bytes(),
            });
        }
        all
    }
}

impl Active {
    /// Namespaces of everything that runs.
    fn namespaces(&self) -> impl Iterator<Item = &str> {
        let donated = self.donation.iter().map(|d| d.request.ns.as_str());
        let received = self.reception.iter().map(|r| r.start.ns.as_str());
        donated.chain(received).chain(self.recovering.iter().map(String::as_str))
    }
    fn refuse_while_held(&self) -> Result<()> {
        match self.held {
            true => bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Unable to start new balancer operation because a snapshot of the cluster is being taken or put back"
            ),
            false => Ok(()),
        }
    }
    fn refuse_while_receiving(&self) -> Result<()> {
        if let Some(running) = &self.reception {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Unable to start new balancer operation because this shard is currently receiving range of {} from {}",
                running.start.ns,
                running.start.from
            );
        }
        if !self.recovering.is_empty() {
            bail!(
                CONFLICTING_OPERATION_IN_PROGRESS,
                "Unable to start new balancer operation because this shard is recovering an earlier migration"
            );
        }
        Ok(())
    }
}

/// Member of a request as text.
pub(crate) fn text(d: &Document, name: &str) -> String {
    d.get_str(name).unwrap_or_default().to_string()
}
/// A UUID member.
pub(crate) fn uuid_of(d: &Document, name: &str) -> Option<[u8; 16]> {
    d.get(name).and_then(Value::as_uuid)
}
