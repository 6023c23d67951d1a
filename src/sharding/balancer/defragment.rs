//! Defragmentation: one machine of [`protocol::balancer::defragmentation`] for each collection with `defragmentCollection`,
//! fed from the catalog, its phase persisted in `config.collections` before it begins.
//!
//! Machines live in memory and are made anew when this node becomes primary, when a phase ends, when shards came or went or
//! the collection's zones were changed, and when the collection is another incarnation; each has a generation, and what an action of an older one reports is
//! ignored. Nothing is lost with a machine: the phase and the measured sizes stand in the catalog.

use super::actions::{Action, Next, is_passing, outcome_of};
use super::moves::{Chosen, Made};
use super::statistics::{Statistics, chunk_view, indexes_of, zone_views};
use crate::chunk::Chunk;
use crate::config::catalog::Sharded;
use crate::config::{COLLECTIONS, ConfigServer, edit};
use crate::messages::chunks::{MeasureRange, ShardMergeChunks};
use crate::messages::{Flag, Message};
use crate::remote::Target;
use document::error::{NETWORK, NOT_PRIMARY};
use document::{Document, Error, ObjectId, Result, bail, codes, doc, err};
use protocol::balancer::defragmentation::{self as policy, ChunkId, Defragmentation, Phase};
use protocol::balancer::failures::Rests;
use protocol::balancer::{ChunkView, Move, Outcome, Reason, Round, assign_zones};
use std::collections::BTreeMap;

/// The pause before a phase begins anew after a failure, in milliseconds; doubled each time.
const REST_MS_MIN: i64 = 1000;
const REST_MS_MAX: i64 = 10 * 60 * 1000;

/// A collection that is defragmented.
pub(super) struct Running {
    machine: Defragmentation,
    generation: u64,
    epoch: ObjectId,
    /// Names of the shards that the machine's indexes mean.
    shards: Vec<String>,
    failures: u32,
    rests_until_ms: i64,
}

impl Running {
    /// The name of the shard that the machine means.
    fn shard(&self, index: usize) -> &str {
        self.shards.get(index).map_or("", String::as_str)
    }
}

/// All of them, by namespace.
#[derive(Default)]
pub(super) struct Defragmentations {
    running: BTreeMap<String, Running>,
    generations: u64,
    /// When the last action was issued, in milliseconds.
    issued_ms: Option<i64>,
    /// By shard: one rests that is not heard of, or has no primary.
    shards: Turns,
    /// By collection on a shard: one rests there for other passing reasons, while the shard has steps of others.
    collections: Turns,
}

/// Who has how many steps under way, and who rests after a failure.
#[derive(Default)]
struct Turns {
    resting: Rests,
    under_way: BTreeMap<String, usize>,
}

impl Turns {
    /// What has failed is tried with one step at a time, so that it takes no places from others.
    fn may_step(&self, name: &str, now: i64) -> bool {
        let is_free = || self.under_way.get(name).is_none_or(|n| *n == 0);
        !self.resting.has_failed(name) || (is_free() && !self.resting.rests(name, now))
    }
    fn began(&mut self, name: &str) {
        *self.under_way.entry(name.to_string()).or_default() += 1;
    }
    fn ended(&mut self, name: &str, failed: bool, now: i64) {
        if let Some(n) = self.under_way.get_mut(name) {
            *n -= 1;
            if *n == 0 {
                self.under_way.remove(name);
            }
        }
        match failed {
            true => self.resting.failed(name, now),
            false => self.resting.succeeded(name),
        }
    }
}

fn on_shard(ns: &str, shard: &str) -> String {
    format!("{ns}@{shard}")
}

impl Defragmentations {
    fn may_step(&self, ns: &str, shard: &str, now: i64) -> bool {
        self.shards.may_step(shard, now) && self.collections.may_step(&on_shard(ns, shard), now)
    }
    fn began(&mut self, ns: &str, shard: &str) {
        self.shards.began(shard);
        self.collections.began(&on_shard(ns, shard));
    }
    fn ended(&mut self, ns: &str, shard: &str, done: &Result<i64>, now: i64) {
        let silent = done.as_ref().is_err_and(is_out_of_reach);
        let retriable = outcome_of(done) == Outcome::Retriable;
        self.shards.ended(shard, silent, now);
        self.collections.ended(&on_shard(ns, shard), retriable && !silent, now);
    }
    /// When the next rest ends.
    fn next_end(&self, now: i64) -> Option<i64> {
        [&self.shards, &self.collections].iter().filter_map(|t| t.resting.next_end(now)).min()
    }
}

/// An error that concerns the shard, and not the collection.
fn is_out_of_reach(e: &Error) -> bool {
    e.is(NETWORK | NOT_PRIMARY) || e.code == codes::FAILED_TO_SATISFY_READ_PREFERENCE
}

/// An action handed out.
pub(super) struct Step {
    ns: String,
    generation: u64,
    epoch: ObjectId,
    shard: String,
    action: policy::Action,
}

/// What a migration of a round belongs to.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    generation: u64,
    chunk: ChunkId,
}

fn phase_of(collection: &Sharded) -> Phase {
    collection.defragmentation_phase().unwrap_or(Phase::MergeAndMeasureChunks)
}

impl ConfigServer {
    /// Makes machines for collections that are to be defragmented and have none, lets go of others, and ends phases.
    pub(super) async fn refresh_defragmentations(&self) {
        let wanted: Vec<Sharded> = self.splittable().into_iter().filter(Sharded::is_defragmented).collect();
        {
            let mut all = self.balancer.defragmentations.lock();
            all.running.retain(|ns, r| wanted.iter().any(|c| c.info.ns == *ns && c.info.epoch == r.epoch));
        }
        for collection in &wanted {
            if let Err(e) = self.advance(collection).await {
                let details =
                    doc! { "step": "defragmentation", "code": e.code, "errmsg": e.message.as_str() };
                self.log_action("balancer.error", &collection.info.ns, details).await;
            }
        }
    }

    /// Some collection's next phase may begin.
    pub(super) fn a_phase_has_ended(&self) -> bool {
        let now = self.node.now_ms();
        let all = self.balancer.defragmentations.lock();
        all.running.values().any(|r| r.rests_until_ms <= now && r.machine.outcome().is_some())
    }

    /// Begins the first or the next phase of a collection, where it is time.
    async fn advance(&self, collection: &Sharded) -> Result<()> {
        let ns = &collection.info.ns;
        let now = self.node.now_ms();
        let (next, failed) = {
            let all = self.balancer.defragmentations.lock();
            match all.running.get(ns) {
                None => (phase_of(collection), false),
                Some(r) if r.rests_until_ms > now => return Ok(()),
                Some(r) => match r.machine.outcome() {
                    Some(next) => (next, r.machine.has_failed()),
                    None => return Ok(()),
                },
            }
        };
        if next == Phase::Finished {
            self.balancer.defragmentations.lock().running.remove(ns);
            self.log_action("defragmentation.end", ns, Document::new()).await;
            return self.end_defragmentation(ns, collection.info.epoch).await;
        }
        if !self.persist_phase(ns, next).await? {
            return Ok(());
        }
        let (machine, shards) = self.machine_for(collection, next)?;
        if machine.has_small() {
            self.balancer.to_move.notify_one();
        }
        let mut all = self.balancer.defragmentations.lock();
        all.generations += 1;
        let generation = all.generations;
        let failures = match all.running.get(ns) {
            Some(r) if failed => r.failures.saturating_add(1),
            Some(r) => r.failures,
            None => 0,
        };
        let rest =
            if failed { (REST_MS_MIN << failures.saturating_sub(1).min(20)).min(REST_MS_MAX) } else { 0 };
        let (epoch, rests_until_ms) = (collection.info.epoch, now + rest);
        all.running
            .insert(ns.clone(), Running { machine, generation, epoch, shards, failures, rests_until_ms });
        Ok(())
    }

    /// A machine over the chunks as they are now, and the names of the shards that its indexes mean.
    fn machine_for(&self, collection: &Sharded, phase: Phase) -> Result<(Defragmentation, Vec<String>)> {
        let shards = self.catalog().shards();
        let indexes = indexes_of(&shards);
        let sized = |c: Chunk| {
            let bytes = c.bytes;
            Some((chunk_view(c, &indexes)?, bytes))
        };
        let (mut chunks, sizes): (Vec<ChunkView>, Vec<Option<i64>>) =
            self.catalog().chunks(collection)?.into_iter().filter_map(sized).unzip();
        let zones = zone_views(collection, self.catalog().zone_ranges(&collection.info.ns))?;
        assign_zones(&mut chunks, &zones);
        let sized = chunks.into_iter().zip(sizes).collect();
        let machine = Defragmentation::begin(phase, sized, zones, self.max_chunk_bytes(collection));
        Ok((machine, shards.into_iter().map(|s| s.name).collect()))
    }

    /// Returns whether the collection is still to be defragmented.
    async fn persist_phase(&self, ns: &str, phase: Phase) -> Result<bool> {
        let _lock = self.lock_chunks(ns).await;
        let collection = self.catalog().sharded(ns)?;
        if !collection.is_defragmented() {
            return Ok(false);
        }
        self.persist_phase_of(collection, phase).await?;
        Ok(true)
    }

    /// The same, of a collection whose chunks are locked by the caller.
    async fn persist_phase_of(&self, collection: Sharded, phase: Phase) -> Result<()> {
        if collection.defragmentation_phase() == Some(phase) {
            return Ok(());
        }
        let named =
            edit(COLLECTIONS, collection.document, |e| e.insert("defragmentationPhase", phase.name()));
        self.commit(&[named]).await
    }

    /// Removes what defragmentation of an incarnation left: the measured sizes, then phase and flag. Also how a user ends it
    /// early. Whatever has its name now is left alone.
    ///
    /// # Errors
    /// A failed log.
    pub(crate) async fn end_defragmentation(&self, ns: &str, epoch: ObjectId) -> Result<()> {
        let of_epoch = || -> Result<Option<Sharded>> {
            Ok(self.catalog().find_collection(ns)?.filter(|c| c.info.epoch == epoch))
        };
        self.balancer.defragmentations.lock().running.retain(|name, r| name != ns || r.epoch != epoch);
        let _lock = self.lock_chunks(ns).await;
        let Some(collection) = of_epoch()?.filter(Sharded::is_defragmented) else { return Ok(()) };
        // What is cut short goes on from here.
        self.persist_phase_of(collection, Phase::Finished).await?;
        let Some(collection) = of_epoch()? else { return Ok(()) };
        self.forget_sizes(&collection).await?;
        let ended = edit(COLLECTIONS, collection.document, |entry| {
            entry.remove("defragmentCollection");
            entry.remove("defragmentationPhase");
        });
        self.commit(&[ended]).await
    }

    /// Current phase and what is left of it, as balancerCollectionStatus shows them.
    ///
    /// # Errors
    /// Unreadable chunks.
    pub(super) fn defragmentation_progress(&self, collection: &Sharded) -> Result<Document> {
        let known = |r: &Running| (r.machine.phase(), r.machine.remaining());
        let running = self.balancer.defragmentations.lock().running.get(&collection.info.ns).map(known);
        let (phase, remaining) = match running {
            Some(known) => known,
            // Nothing works on it: the balancer is off.
            None => {
                let (machine, _) = self.machine_for(collection, phase_of(collection))?;
                (machine.phase(), machine.remaining())
            }
        };
        Ok(
            doc! { "currentPhase": phase.name(), "progress": { "remainingChunksToProcess": remaining as i64 } },
        )
    }

    pub(super) fn next_defragmentation(&self) -> Next {
        let now = self.node.now_ms();
        let throttling = self.parameters.int("chunkDefragmentationThrottlingMS");
        let mut all = self.balancer.defragmentations.lock();
        let ready: Vec<String> = all
            .running
            .iter()
            .filter(|(ns, r)| {
                r.rests_until_ms <= now && r.machine.has_action(|i| all.may_step(ns, r.shard(i), now))
            })
            .map(|(ns, _)| ns.clone())
            .collect();
        if ready.is_empty() {
            let rests = all.running.values().map(|r| r.rests_until_ms).filter(|at| *at > now).min();
            let rests = rests.into_iter().chain(all.next_end(now)).min();
            return rests.map_or(Next::Nothing, |at| Next::In(at - now));
        }
        if let Some(at) = all.issued_ms.map(|at| at.saturating_add(throttling)).filter(|at| *at > now) {
            return Next::In(at - now);
        }
        let ns = ready[runtime::random::<u32>() as usize % ready.len()].clone();
        let Some(r) = all.running.get(&ns) else { return Next::Nothing };
        let may: Vec<bool> = r.shards.iter().map(|shard| all.may_step(&ns, shard, now)).collect();
        let Some(r) = all.running.get_mut(&ns) else { return Next::Nothing };
        let action = r.machine.next_action(|i| may.get(i).copied().unwrap_or(false));
        let Some(action) = action else { return Next::Nothing };
        let (policy::Action::Merge { shard, .. } | policy::Action::Measure { shard, .. }) = &action;
        let shard = r.shard(*shard).to_string();
        let step = Step { ns, generation: r.generation, epoch: r.epoch, shard, action };
        all.began(&step.ns, &step.shard);
        all.issued_ms = Some(now);
        Next::Action(Action::Defragmentation(step))
    }

    /// Performs an action and tells its machine.
    pub(super) async fn perform_step(&self, step: Step) {
        let done = self.while_heard(&step.shard, self.try_step(&step)).await;
        if let Err(e) = &done
            && !is_passing(e)
        {
            let details = doc! {
                "step": "defragmentation", "shard": step.shard.as_str(), "code": e.code, "errmsg": e.message.as_str(),
            };
            self.log_action("balancer.error", &step.ns, details).await;
        }
        let mut all = self.balancer.defragmentations.lock();
        all.ended(&step.ns, &step.shard, &done, self.node.now_ms());
        let Some(r) = all.running.get_mut(&step.ns).filter(|r| r.generation == step.generation) else {
            return;
        };
        match step.action {
            policy::Action::Merge { chunk, .. } => r.machine.merged(chunk, outcome_of(&done)),
            policy::Action::Measure { chunk, .. } => {
                let outcome = outcome_of(&done);
                r.machine.measured(chunk, done.map_err(|_| outcome));
            }
        }
        // It was about the neighbour of a chunk that waits, perhaps.
        if r.machine.has_small() {
            self.balancer.to_move.notify_one();
        }
    }

    /// Returns the size measured; 0 after a merge.
    async fn try_step(&self, step: &Step) -> Result<i64> {
        let collection = self.catalog().sharded(&step.ns)?;
        let (epoch, timestamp) = (collection.info.epoch, collection.info.timestamp);
        if epoch != step.epoch || !collection.is_defragmented() {
            bail!(CONFLICTING_OPERATION_IN_PROGRESS, "{} is not defragmented any more", step.ns);
        }
        let shard = self.catalog().shard(&step.shard)?;
        match &step.action {
            policy::Action::Merge { min, max, .. } => {
                let merge = ShardMergeChunks {
                    ns: step.ns.clone(),
                    bounds: vec![min.clone(), max.clone()],
                    epoch: Some(epoch),
                    timestamp: Some(timestamp),
                    of_balancer: Flag(true),
                };
                self.remote.admin(Target::Host(&shard.host), merge.to_document()).await.map(|_| 0)
            }
            policy::Action::Measure { min, max, .. } => {
                let ask = MeasureRange {
                    ns: step.ns.clone(),
                    key: collection.key.document().clone(),
                    min: min.clone(),
                    max: max.clone(),
                };
                let reply = self.remote.admin(Target::Host(&shard.host), ask.to_document()).await?;
                let bytes =
                    reply.get_i64("size").ok_or_else(|| err!(FAILED_TO_PARSE, "no size in the answer"))?;
                self.keep_size(&step.ns, epoch, min, max, bytes).await?;
                Ok(bytes)
            }
        }
    }

    /// The migrations of a round, chosen before any other policy may have the shards.
    pub(super) fn defragmentation_moves(
        &self,
        collections: &[Sharded],
        statistics: &Statistics,
        round: &mut Round<'_>,
    ) -> Vec<Chosen> {
        let mut all = self.balancer.defragmentations.lock();
        let now = self.node.now_ms();
        let mut chosen = Vec::new();
        for collection in collections.iter().filter(|c| c.is_defragmented() && c.may_migrate()) {
            let Some(r) = all.running.get_mut(&collection.info.ns) else { continue };
            if !self.is_of_now(r, collection, statistics) {
                // The machine's indexes mean nothing any more. The phase begins anew.
                all.running.remove(&collection.info.ns);
                continue;
            }
            if r.rests_until_ms > now || r.epoch != collection.info.epoch {
                continue;
            }
            let name = |i: usize| statistics.shards.get(i).map(|s| s.name.clone()).unwrap_or_default();
            let ns = &collection.info.ns;
            let (bytes, failures) = (statistics.bytes_of(ns), self.balancer.failures.lock());
            let known = policy::Known { ns, bytes: &bytes, failures: &failures, now_ms: now };
            for m in r.machine.migrations(round, &known) {
                let what = Move {
                    ns: ns.clone(),
                    from: name(m.from),
                    to: name(m.to),
                    min: m.min,
                    max: Some(m.max),
                    min_key: m.min_key,
                    reason: Reason::DefragmentingChunks,
                    force_jumbo: false,
                };
                let origin = Some(Origin { generation: r.generation, chunk: m.chunk });
                chosen.push(Chosen { what, collection: collection.clone(), origin });
            }
        }
        chosen
    }

    /// No shard came or went, and no zone was changed, since the machine was made.
    fn is_of_now(&self, r: &Running, collection: &Sharded, statistics: &Statistics) -> bool {
        let zones = zone_views(collection, self.catalog().zone_ranges(&collection.info.ns));
        r.shards.iter().eq(statistics.shards.iter().map(|s| &s.name))
            && zones.is_ok_and(|zones| zones == r.machine.zones())
    }

    /// Tells the machine how its migration ended. One that was not made, since the balancer was stopped, is worth another
    /// attempt; one of a chunk that somebody else has changed meanwhile is not.
    pub(super) fn defragmentation_moved(&self, chosen: &Chosen, outcome: &Result<Made>) {
        let Some(origin) = &chosen.origin else { return };
        let unchanged = outcome.is_ok() || self.is_as_chosen(chosen);
        let mut all = self.balancer.defragmentations.lock();
        let Some(r) = all.running.get_mut(&chosen.what.ns).filter(|r| r.generation == origin.generation)
        else {
            return;
        };
        let outcome = match outcome {
            Ok(Made::Moved) => Outcome::Done,
            Ok(Made::Stopped) => Outcome::Retriable,
            Ok(Made::TooBig) => return r.machine.too_big(origin.chunk),
            Err(_) if unchanged => outcome_of(outcome),
            Err(_) => Outcome::Failed,
        };
        if outcome == Outcome::Done {
            r.failures = 0;
        }
        r.machine.migrated(origin.chunk, outcome);
    }

    /// Whether the chunk is still where it was and reaches as far as it did.
    fn is_as_chosen(&self, chosen: &Chosen) -> bool {
        let what = &chosen.what;
        let found = self.catalog().chunk_at(&chosen.collection, &what.min).ok().flatten();
        found
            .is_some_and(|c| c.min == what.min && Some(&c.max) == what.max.as_ref() && *c.shard == *what.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: i32) -> Result<i64> {
        Err(Error::new(code, "failed"))
    }

    #[test]
    fn a_failure_of_one_collection_rests_no_other() {
        let mut all = Defragmentations::default();
        for _ in 0..3 {
            all.began("d.a", "s");
        }
        all.began("d.b", "s");
        all.ended("d.a", "s", &failed(codes::CONFLICTING_OPERATION_IN_PROGRESS), 0);
        assert!(!all.may_step("d.a", "s", 500) && all.may_step("d.a", "other", 500));
        assert!(all.may_step("d.b", "s", 500), "another collection waits for it");
        assert_eq!(all.next_end(500), Some(1000));
        // After the rest, one at a time: two are still under way.
        assert!(!all.may_step("d.a", "s", 2000));
        all.ended("d.a", "s", &failed(codes::LOCK_TIMEOUT), 2000);
        all.ended("d.a", "s", &Ok(0), 2000);
        assert!(all.may_step("d.a", "s", 2000));
    }

    #[test]
    fn a_shard_that_is_not_heard_of_rests_for_all() {
        for code in
            [codes::HOST_UNREACHABLE, codes::NOT_WRITABLE_PRIMARY, codes::FAILED_TO_SATISFY_READ_PREFERENCE]
        {
            let mut all = Defragmentations::default();
            all.began("d.a", "s");
            all.ended("d.a", "s", &failed(code), 0);
            assert!(!all.may_step("d.a", "s", 500) && !all.may_step("d.b", "s", 500));
            assert!(all.may_step("d.b", "other", 500));
            all.began("d.b", "s");
            assert!(!all.may_step("d.a", "s", 2000), "one step at a time");
            all.ended("d.b", "s", &Ok(0), 2000);
            assert!(all.may_step("d.a", "s", 2000));
        }
    }
}
