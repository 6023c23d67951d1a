//! What a shard shows of the reshardings it takes part in: documents of `config.localReshardingOperations`, rows of `currentOp`, figures
//! of `serverStatus`.
//!
//! A document is written with each state, and goes with the copy's end. It is for people: nobody decides by it. One of before a restart
//! stays until the coordinator has the copy begun anew, or ends it.

use crate::messages::resharding::Resharding;
use crate::shard::ShardRole;
use document::{Document, Result, Value, doc};
use parking_lot::Mutex;
use runtime::Instant;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A side of a resharding: what it is called, where its documents are, and its states in their order.
pub(crate) struct Side {
    service: &'static str,
    /// The member of a row that has the state.
    member: &'static str,
    /// As `currentInSteps` names it.
    role: &'static str,
    /// Its documents; a coordinator's are its own.
    pub(crate) collection: &'static str,
    states: &'static [&'static str],
}

pub(crate) const DONOR: Side = Side {
    service: "ReshardingDonorService",
    member: "donorState",
    role: "Donor",
    collection: "config.localReshardingOperations.donor",
    states: &[
        "preparing-to-donate",
        "donating-initial-data",
        "donating-oplog-entries",
        "preparing-to-block-writes",
        "error",
        "blocking-writes",
        "done",
    ],
};
pub(crate) const RECIPIENT: Side = Side {
    service: "ReshardingRecipientService",
    member: "recipientState",
    role: "Recipient",
    collection: "config.localReshardingOperations.recipient",
    states: &[
        "awaiting-fetch-timestamp",
        "creating-collection",
        "cloning",
        "building-index",
        "applying",
        "error",
        "strict-consistency",
        "done",
    ],
};
pub(crate) const COORDINATOR: Side = Side {
    service: "ReshardingCoordinatorService",
    member: "coordinatorState",
    role: "Coordinator",
    collection: "config.system.sharding_ddl_coordinators",
    states: &[
        "initializing",
        "preparing-to-donate",
        "cloning",
        "applying",
        "blocking-writes",
        "aborting",
        "committing",
    ],
};

/// What one shard does for one resharding, on one side.
pub(crate) struct Progress {
    side: &'static Side,
    of: Resharding,
    provenance: String,
    /// What its document says besides its state.
    base: Document,
    /// The states it has entered, and when.
    entered: Mutex<Vec<(&'static str, Instant)>>,
}

impl Progress {
    /// A part that has entered its first state. `more`: what its document says besides.
    pub(crate) fn new(
        side: &'static Side,
        of: &Resharding,
        provenance: &str,
        state: &'static str,
        more: Document,
    ) -> Progress {
        let mut base = doc! {
            "_id": Value::uuid(of.id), "ns": of.ns.as_str(), "ui": Value::uuid(of.old), "tempNs": of.temporary.as_str(),
            "provenance": provenance, "startTime": Value::DateTime(runtime::now_millis()),
        };
        base.0.extend(more.0);
        let entered = Mutex::new(vec![(state, Instant::now())]);
        Progress { side, of: of.clone(), provenance: provenance.to_string(), base, entered }
    }
    pub(crate) fn state(&self) -> &'static str {
        self.entered.lock().last().map_or("", |(state, _)| state)
    }
    /// Enters a state, once; whether it is new.
    pub(crate) fn enter(&self, state: &'static str) -> bool {
        let mut entered = self.entered.lock();
        let new = entered.iter().all(|(before, _)| *before != state);
        if new {
            entered.push((state, Instant::now()));
        }
        new
    }
    pub(crate) fn has_entered(&self, state: &str) -> bool {
        self.entered.lock().iter().any(|(name, _)| *name == state)
    }
    /// How long it was in a state, or is by now.
    pub(crate) fn time_in(&self, state: &str) -> Duration {
        let entered = self.entered.lock();
        let Some(at) = entered.iter().position(|(name, _)| *name == state) else { return Duration::ZERO };
        let until = entered.get(at + 1).map_or_else(Instant::now, |(_, next)| *next);
        until.duration_since(entered[at].1)
    }
    pub(crate) fn time(&self) -> Duration {
        self.entered.lock().first().map_or(Duration::ZERO, |(_, begun)| begun.elapsed())
    }
    pub(crate) fn figures<'a>(&self, role: &'a ShardRole) -> &'a Figures {
        role.resharding.figures.of(&self.provenance)
    }

    /// Writes its document, majority-committed. `more`: what its state is besides its name.
    ///
    /// # Errors
    /// A failed log; those of a member that leads no more.
    pub(crate) async fn write(&self, role: &ShardRole, more: Document) -> Result<()> {
        role.persist_config_time().await?;
        role.local.put(self.side.collection, &self.document(more)).await
    }
    /// Writes it anew, unless it was forgotten: the part may have been aborted meanwhile.
    ///
    /// # Errors
    /// As [`Progress::write`].
    pub(crate) async fn rewrite(&self, role: &ShardRole, more: Document) -> Result<()> {
        role.persist_config_time().await?;
        let document = self.document(more);
        role.local.modify(self.side.collection, &Value::uuid(self.of.id), |d| *d = document).await.map(drop)
    }
    fn document(&self, more: Document) -> Document {
        let mut state = doc! { "state": self.state() };
        state.0.extend(more.0);
        let mut document = self.base.clone();
        document.push("mutableState", state);
        document
    }

    /// A row of `currentOp`.
    pub(crate) fn row(&self) -> Document {
        let mut command = Document::new();
        command.push(self.provenance.as_str(), self.of.ns.as_str());
        let mut row = doc! {
            "type": "op", "desc": format!("{} {}", self.side.service, document::uuid::to_string(&self.of.id)), "op": "command",
            "ns": self.of.ns.as_str(), "active": true, "originatingCommand": command,
            "totalOperationTimeElapsedSecs": seconds(self.time()),
        };
        row.push(self.side.member, self.state());
        row.push("opStatus", "running");
        row
    }
}

impl Progress {
    /// The row of a coordinator.
    pub(crate) fn coordinator_row(&self) -> Document {
        let mut row = self.row();
        for (shown, state) in [
            ("totalCopyTimeElapsedSecs", "cloning"),
            ("totalApplyTimeElapsedSecs", "applying"),
            ("totalCriticalSectionTimeElapsedSecs", "blocking-writes"),
        ] {
            row.push(shown, seconds(self.time_in(state)));
        }
        row
    }
}

/// Whole seconds, as rows say durations.
pub(crate) fn seconds(time: Duration) -> i64 {
    time.as_secs() as i64
}

/// Removes what a shard's documents say of a resharding.
///
/// # Errors
/// A failed log.
pub(crate) async fn forget(role: &ShardRole, of: &Resharding) -> Result<()> {
    for side in [&DONOR, &RECIPIENT] {
        let this = doc! { "_id": Value::uuid(of.id), "tempNs": of.temporary.as_str() };
        role.local.delete(side.collection, &this).await?;
    }
    Ok(())
}

macro_rules! figures {
    ($group:ident $($name:ident $shown:literal),+ $(,)?) => {
        /// Counters since the process began.
        #[derive(Default)]
        pub(crate) struct $group { $(pub(crate) $name: AtomicI64),+ }
        impl $group {
            fn to_document(&self) -> Document {
                let mut d = Document::new();
                $(d.push($shown, self.$name.load(Ordering::Relaxed));)+
                d
            }
        }
    };
}
figures! { Ended
    started "countStarted",
    succeeded "countSucceeded",
    failed "countFailed",
    canceled "countCanceled",
}
figures! { Active
    documents "documentsCopied",
    bytes "bytesCopied",
    fetched "oplogEntriesFetched",
    applied "oplogEntriesApplied",
    upserts "insertsApplied",
    deletes "deletesApplied",
}
figures! { Latencies
    clone_wait_millis "collectionCloningTotalRemoteBatchRetrievalTimeMillis",
    clone_batches "collectionCloningTotalRemoteBatchesRetrieved",
    insert_millis "collectionCloningTotalLocalInsertTimeMillis",
    inserts "collectionCloningTotalLocalInserts",
    fetch_millis "oplogFetchingTotalRemoteBatchRetrievalTimeMillis",
    fetches "oplogFetchingTotalRemoteBatchesRetrieved",
    apply_millis "oplogApplyingTotalLocalBatchApplyTimeMillis",
    applies "oplogApplyingTotalLocalBatchesApplied",
}

/// The figures of all operations of one kind.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) ended: Ended,
    pub(crate) active: Active,
    pub(crate) latencies: Latencies,
}

/// The kinds of operations, as `shardingStatistics` names them and by their provenance.
const KINDS: [(&str, &str); 3] = [
    ("resharding", "reshardCollection"),
    ("moveCollection", "moveCollection"),
    ("unshardCollection", "unshardCollection"),
];

/// The figures of every kind.
#[derive(Default)]
pub(crate) struct AllFigures([Figures; KINDS.len()]);

impl AllFigures {
    /// Those of operations of this provenance. A move by the balancer is a move, and the sharding of a tracked collection a resharding.
    pub(crate) fn of(&self, provenance: &str) -> &Figures {
        let kind = match provenance {
            "balancerMoveCollection" => "moveCollection",
            other => other,
        };
        &self.0[KINDS.iter().position(|(_, named)| *named == kind).unwrap_or(0)]
    }
    /// The members of `shardingStatistics`.
    pub(crate) fn to_document(&self, parts: &[&Progress]) -> Document {
        let mut d = Document::new();
        for ((shown, _), figures) in KINDS.iter().zip(&self.0) {
            let mut kind = figures.ended.to_document();
            kind.push("active", figures.active.to_document());
            kind.push("latencies", figures.latencies.to_document());
            let own: Vec<&Progress> =
                parts.iter().copied().filter(|p| std::ptr::eq(self.of(&p.provenance), figures)).collect();
            kind.push("currentInSteps", steps(&own));
            d.push(*shown, kind);
        }
        d
    }
}

/// How many parts are in each state of each side.
fn steps(parts: &[&Progress]) -> Document {
    let mut d = Document::new();
    for side in [&COORDINATOR, &RECIPIENT, &DONOR] {
        for (i, state) in side.states.iter().enumerate() {
            let here = parts.iter().filter(|p| p.side.role == side.role && p.state() == *state).count();
            d.push(format!("countInstancesIn{}State{}{}", side.role, i + 1, camel(state)), here as i64);
        }
    }
    d
}

/// `blocking-writes` as `BlockingWrites`.
fn camel(state: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
            .unwrap_or_default()
    };
    state.split('-').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_where_it_is_and_knows_how_long_it_was_where_it_has_been() {
        let of = Resharding {
            ns: "d.c".into(),
            temporary: "d.t".into(),
            id: [1; 16],
            old: [2; 16],
            new: [3; 16],
            tracked: crate::messages::Flag(true),
        };
        let part = Progress::new(&RECIPIENT, &of, "moveCollection", "creating-collection", Document::new());
        assert!(part.enter("cloning") && !part.enter("cloning"));
        assert!(part.time_in("creating-collection") <= part.time());
        assert_eq!(part.time_in("applying"), Duration::ZERO);
        let all = AllFigures::default().to_document(&[&part]);
        let counted = |kind: &str| {
            all.get_path(&format!("{kind}.currentInSteps.countInstancesInRecipientState3Cloning")).cloned()
        };
        assert_eq!(
            (counted("moveCollection"), counted("resharding")),
            (Some(Value::Int64(1)), Some(Value::Int64(0)))
        );
    }
}
