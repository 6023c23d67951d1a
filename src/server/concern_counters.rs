//! Which concerns clients gave: `readConcernCounters` and `opWriteConcernCounters` of serverStatus.

use crate::counters::RareCounter;
use document::{Document, doc};
use node::Operation;
use node::operation::{ReadConcern, ReadLevel, WriteAck, WriteConcern};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Reads by their level.
#[derive(Default)]
struct Levels {
    none: RareCounter,
    /// None given, and the default set for the cluster is local, available or majority.
    cluster: [RareCounter; 3],
    /// None given and no default set, which is local.
    implicit: RareCounter,
    local: RareCounter,
    available: RareCounter,
    majority: RareCounter,
    linearizable: RareCounter,
    snapshot_at: RareCounter,
    snapshot: RareCounter,
}

impl Levels {
    /// `default` is what `setDefaultRWConcern` has set, if anything.
    fn note(&self, concern: &ReadConcern, default: Option<ReadLevel>) {
        if !concern.level_given {
            self.none.increment();
            return match default {
                None => self.implicit.increment(),
                Some(ReadLevel::Available) => self.cluster[1].increment(),
                Some(ReadLevel::Majority) => self.cluster[2].increment(),
                Some(_) => self.cluster[0].increment(),
            };
        }
        match concern.level {
            ReadLevel::Local => self.local.increment(),
            ReadLevel::Available => self.available.increment(),
            ReadLevel::Majority => self.majority.increment(),
            ReadLevel::Linearizable => self.linearizable.increment(),
            ReadLevel::Snapshot if concern.at_cluster_time.is_some() => self.snapshot_at.increment(),
            ReadLevel::Snapshot => self.snapshot.increment(),
        }
    }
    fn shown(&self) -> Document {
        let [local, available, majority] = self.cluster.each_ref().map(RareCounter::get);
        doc! {
            "none": self.none.get(),
            "noneInfo": {
                "CWRC": { "local": local, "available": available, "majority": majority },
                "implicitDefault": { "local": self.implicit.get(), "available": 0i64 },
            },
            "local": self.local.get(),
            "available": self.available.get(),
            "majority": self.majority.get(),
            "snapshot": {
                "withClusterTime": self.snapshot_at.get(), "withoutClusterTime": self.snapshot.get(),
            },
            "linearizable": self.linearizable.get(),
        }
    }
}

/// The read concerns of commands that read.
#[derive(Default)]
pub struct ReadConcerns {
    outside: Levels,
    inside: Levels,
}

impl ReadConcerns {
    /// Counts a read, or the first statement of a transaction, which gives the concern of all.
    pub fn note(&self, operation: &Operation, command: &str, default: impl Fn() -> Option<ReadLevel>) {
        let session = operation.session.as_ref();
        let inside = session.is_some_and(|s| s.autocommit.is_some());
        if inside && session.is_some_and(|s| s.start_transaction) {
            self.inside.note(&operation.read_concern, default());
        }
        if !inside && matches!(command, "find" | "aggregate" | "count" | "distinct" | "mapReduce") {
            self.outside.note(&operation.read_concern, default());
        }
    }
    pub fn shown(&self) -> Document {
        doc! { "nonTransactionOps": self.outside.shown(), "transactionOps": self.inside.shown() }
    }
}

/// Writes by what they wait for.
#[derive(Default)]
struct Waits {
    majority: i64,
    nodes: BTreeMap<i64, i64>,
    modes: BTreeMap<String, i64>,
}

impl Waits {
    fn note(&mut self, concern: &WriteConcern, writes: i64) {
        *match &concern.w {
            WriteAck::Majority => &mut self.majority,
            WriteAck::Nodes(n) => self.nodes.entry(*n).or_default(),
            WriteAck::Mode(name) => self.modes.entry(name.clone()).or_default(),
            WriteAck::Tags(tags) => self.modes.entry(tags.keys().collect::<Vec<_>>().join(",")).or_default(),
        } += writes;
    }
    fn shown(&self) -> Document {
        let nodes: Document = self.nodes.iter().map(|(n, count)| (n.to_string(), (*count).into())).collect();
        let modes: Document = self.modes.iter().map(|(m, count)| (m.clone(), (*count).into())).collect();
        doc! { "wmajority": self.majority, "wnum": nodes, "wtag": modes }
    }
}

#[derive(Default)]
struct Writes {
    given: Waits,
    none: i64,
    cluster: Waits,
    implicit: Waits,
}

impl Writes {
    fn shown(&self) -> Document {
        let mut d = self.given.shown();
        d.push("none", self.none);
        let mut implicit = self.implicit.shown();
        implicit.remove("wtag");
        d.push("noneInfo", doc! { "CWWC": self.cluster.shown(), "implicitDefault": implicit });
        d
    }
}

/// The write concerns of inserts, updates and deletes; counted where `reportOpWriteConcernCountersInServerStatus` is on.
#[derive(Default)]
pub struct WriteConcerns {
    reported: AtomicBool,
    kinds: Mutex<[Writes; 3]>,
}

impl WriteConcerns {
    pub fn report(&self, on: bool) {
        self.reported.store(on, Relaxed);
    }
    pub fn are_reported(&self) -> bool {
        self.reported.load(Relaxed)
    }
    /// Counts so many statements of an `insert`, `update` or `delete`. `default` is what `setDefaultRWConcern` has set, `implicit`
    /// what holds where nothing is set.
    pub fn note(
        &self,
        command: &str,
        given: &WriteConcern,
        statements: i64,
        default: Option<&WriteConcern>,
        implicit: &WriteConcern,
    ) {
        let Some(kind) = ["insert", "update", "delete"].iter().position(|name| *name == command) else {
            return;
        };
        let writes = &mut self.kinds.lock()[kind];
        if given.given {
            return writes.given.note(given, statements);
        }
        writes.none += statements;
        match default {
            Some(concern) => writes.cluster.note(concern, statements),
            None => writes.implicit.note(implicit, statements),
        }
    }
    pub fn shown(&self) -> Document {
        let kinds = self.kinds.lock();
        doc! { "insert": kinds[0].shown(), "update": kinds[1].shown(), "delete": kinds[2].shown() }
    }
}
