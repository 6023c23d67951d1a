//! Query sampling: a share of the queries on chosen collections is kept, so that `analyzeShardKey` can tell how a shard key
//! would serve them.
//!
//! ```text
//! analyzers   config.queryAnalyzers      which collections, and how many queries a second: configureQueryAnalyzer, on the primary
//!                │                       of the set or of the config server
//!                │ _refreshQueryAnalyzerConfiguration, regularly: the share of the rate that is the asking sampler's
//! sampler        ▼                       routers, and members of sets outside a cluster: a token bucket for each collection
//!                │ chosen by [`take`]
//! samples     config.sampledQueries      a shard, or the primary of the set: buffered, and written regularly
//!             config.sampledQueriesDiff  which fields a sampled update has changed, on the shard that executed it
//! ```
//! A sample is a statistic: one that cannot be handed on is lost. While no collection is sampled, a command costs one relaxed load.

pub mod analyzers;
pub mod samples;
pub mod take;

use crate::stripe::Counter;
use document::{Document, Value, doc};
use parking_lot::{Mutex, RwLock};
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// What is known of a collection that is sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    pub ns: String,
    pub uuid: [u8; 16],
    /// The share of the rate that is this sampler's; 0 on a shard, which is handed samples by routers.
    pub samples_per_second: f64,
    pub start_ms: i64,
}

impl Configuration {
    /// As replies to `_refreshQueryAnalyzerConfiguration` have it. DO NOT CHANGE.
    pub fn to_document(&self) -> Document {
        doc! {
            "ns": self.ns.as_str(), "collectionUuid": Value::uuid(self.uuid),
            "samplesPerSecond": self.samples_per_second, "startTime": Value::DateTime(self.start_ms),
        }
    }
    /// What a document of `config.queryAnalyzers` says.
    pub fn of_analyzer(d: &Document) -> Option<Configuration> {
        Configuration::parse(&doc! {
            "ns": d.get_str("_id")?, "collectionUuid": d.get("collUuid")?.clone(),
            "samplesPerSecond": d.get("samplesPerSecond")?.clone(), "startTime": d.get("startTime")?.clone(),
        })
    }
    pub fn parse(d: &Document) -> Option<Configuration> {
        Some(Configuration {
            ns: d.get_str("ns")?.to_string(),
            uuid: d.get("collectionUuid")?.as_uuid()?,
            samples_per_second: d.get("samplesPerSecond")?.as_f64()?,
            start_ms: match d.get("startTime")? {
                Value::DateTime(ms) => *ms,
                _ => return None,
            },
        })
    }
}

/// Whether a query reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// A query that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub id: [u8; 16],
    pub ns: String,
    pub uuid: [u8; 16],
    /// The command's name, as `cmdName` shows it.
    pub name: String,
    pub command: Document,
}

impl Sample {
    pub fn kind(&self) -> Kind {
        match self.name.as_str() {
            "update" | "delete" | "findAndModify" => Kind::Write,
            _ => Kind::Read,
        }
    }
    /// As `config.sampledQueries` has it, but for `expireAt`. DO NOT CHANGE: on disk, and shown by `$listSampledQueries`.
    pub fn to_document(&self) -> Document {
        doc! {
            "_id": Value::uuid(self.id), "ns": self.ns.as_str(), "collectionUuid": Value::uuid(self.uuid),
            "cmdName": self.name.as_str(), "cmd": self.command.clone(),
        }
    }
    pub fn parse(d: &Document) -> Option<Sample> {
        Some(Sample {
            id: d.get("_id")?.as_uuid()?,
            ns: d.get_str("ns")?.to_string(),
            uuid: d.get("collectionUuid")?.as_uuid()?,
            name: d.get_str("cmdName")?.to_string(),
            command: d.get_document("cmd")?.clone(),
        })
    }
}

/// How many queries were sampled, and their bytes where they are kept.
#[derive(Default)]
pub struct Counts {
    reads: Counter,
    read_bytes: Counter,
    writes: Counter,
    write_bytes: Counter,
}

impl Counts {
    fn add(&self, kind: Kind, bytes: usize) {
        let (count, sum) = match kind {
            Kind::Read => (&self.reads, &self.read_bytes),
            Kind::Write => (&self.writes, &self.write_bytes),
        };
        count.increment();
        sum.add(bytes as i64);
    }
    /// Adds the counts under names that begin with `prefix`; a router keeps no samples and so shows no bytes.
    fn show(&self, d: &mut Document, names: [&str; 4], keeps: bool) {
        let [reads, read_bytes, writes, write_bytes] = names;
        d.push(reads, self.reads.get());
        if keeps {
            d.push(read_bytes, self.read_bytes.get());
        }
        d.push(writes, self.writes.get());
        if keeps {
            d.push(write_bytes, self.write_bytes.get());
        }
    }
}

/// A collection that is sampled.
struct Analyzed {
    uuid: [u8; 16],
    start_ms: i64,
    bucket: Mutex<Bucket>,
    counts: Counts,
}

/// Chooses queries, and counts them.
#[derive(Default)]
pub struct Sampler {
    /// Some collection has a rate here.
    active: AtomicBool,
    /// Queries on sampled collections since they were counted last.
    executed: AtomicI64,
    collections: RwLock<Arc<BTreeMap<String, Arc<Analyzed>>>>,
    totals: Counts,
}

impl Sampler {
    /// Whether a query may be chosen here: the one question that is asked of every command.
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }
    /// Whether some collection is known to be sampled, here or elsewhere.
    pub fn knows_any(&self) -> bool {
        !self.collections.read().is_empty()
    }
    /// Takes over what is sampled now. A collection that was sampled before keeps its counts.
    pub fn learn(&self, configurations: &[Configuration], burst_multiplier: f64) {
        let now = Instant::now();
        let old = self.collections.read().clone();
        let known = |c: &Configuration| {
            old.get(&c.ns).filter(|a| a.uuid == c.uuid && a.start_ms == c.start_ms).cloned()
        };
        let collections = configurations.iter().map(|c| {
            let analyzed = known(c).unwrap_or_else(|| {
                let (bucket, counts) = (Mutex::new(Bucket::new(now)), Counts::default());
                Arc::new(Analyzed { uuid: c.uuid, start_ms: c.start_ms, bucket, counts })
            });
            analyzed.bucket.lock().set_rate(c.samples_per_second, burst_multiplier);
            (c.ns.clone(), analyzed)
        });
        *self.collections.write() = Arc::new(collections.collect());
        self.active.store(configurations.iter().any(|c| c.samples_per_second > 0.0), Relaxed);
    }
    /// Whether this query on the collection is to be sampled; the UUID that the collection is meant to have.
    pub fn draw(&self, ns: &str) -> Option<[u8; 16]> {
        let collections = self.collections.read().clone();
        let analyzed = collections.get(ns)?;
        self.executed.fetch_add(1, Relaxed);
        analyzed.bucket.lock().take(Instant::now()).then_some(analyzed.uuid)
    }
    /// Counts a sample: on the sampler, and where it is kept.
    pub fn count(&self, ns: &str, kind: Kind, bytes: usize) {
        self.totals.add(kind, bytes);
        if let Some(analyzed) = self.collections.read().get(ns) {
            analyzed.counts.add(kind, bytes);
        }
    }
    /// How many queries there were on sampled collections since this was asked last.
    pub fn take_executed(&self) -> i64 {
        self.executed.swap(0, Relaxed)
    }

    /// The rows of `$currentOp`. `keeps`: samples are kept by this node.
    pub fn rows(&self, keeps: bool) -> Vec<Document> {
        let collections = self.collections.read().clone();
        let row = |(ns, a): (&String, &Arc<Analyzed>)| {
            let mut d = doc! { "desc": "query analyzer", "ns": ns.as_str(), "collUuid": Value::uuid(a.uuid) };
            let rate = a.bucket.lock().rate;
            if rate > 0.0 {
                d.push("samplesPerSecond", rate);
            }
            d.push("startTime", Value::DateTime(a.start_ms));
            let names =
                ["sampledReadsCount", "sampledReadsBytes", "sampledWritesCount", "sampledWritesBytes"];
            a.counts.show(&mut d, names, keeps);
            d
        };
        collections.iter().map(row).collect()
    }
    /// `serverStatus.queryAnalyzers`. `chooses`: this node samples queries itself.
    pub fn status(&self, chooses: bool, keeps: bool) -> Document {
        let collections = self.collections.read().clone();
        let mut d = Document::new();
        if chooses {
            let active = collections.values().filter(|a| a.bucket.lock().rate > 0.0).count();
            d.push("activeCollections", active as i64);
        }
        d.push("totalCollections", collections.len() as i64);
        let names = [
            "totalSampledReadsCount",
            "totalSampledReadsBytes",
            "totalSampledWritesCount",
            "totalSampledWritesBytes",
        ];
        self.totals.show(&mut d, names, keeps);
        d
    }
}

/// Tokens that come at a rate; each pays for a sample. After a quiet time there are as many as come within `burst multiplier`
/// seconds, and at least one.
struct Bucket {
    rate: f64,
    most: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn new(now: Instant) -> Bucket {
        Bucket { rate: 0.0, most: 1.0, tokens: 1.0, filled: now }
    }
    fn set_rate(&mut self, rate: f64, burst_multiplier: f64) {
        self.rate = rate;
        self.most = (rate * burst_multiplier).max(1.0);
    }
    fn take(&mut self, now: Instant) -> bool {
        if self.rate <= 0.0 {
            return false;
        }
        let elapsed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + elapsed * self.rate).min(self.most);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_gives_as_many_tokens_as_its_rate_says() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        assert!(!bucket.take(start));
        bucket.set_rate(5.0, 2.0);
        let taken = |bucket: &mut Bucket, from_ms: u64, to_ms: u64| {
            (from_ms..to_ms).filter(|ms| bucket.take(start + Duration::from_millis(*ms))).count()
        };
        // One that is there, and five a second.
        assert_eq!(taken(&mut bucket, 0, 2000), 1 + 9);
        // No more than two seconds' worth are saved up.
        assert_eq!(taken(&mut bucket, 60_000, 60_001), 1);
        assert_eq!(taken(&mut bucket, 60_001, 60_020), 9);
        bucket.set_rate(0.0, 2.0);
        assert_eq!(taken(&mut bucket, 70_000, 80_000), 0);
    }

    #[test]
    fn a_sampler_is_active_while_some_collection_has_a_rate_and_keeps_its_counts() {
        let sampler = Sampler::default();
        let of = |rate: f64, start_ms: i64| {
            [Configuration { ns: "d.c".into(), uuid: [7; 16], samples_per_second: rate, start_ms }]
        };
        assert!(!sampler.is_active() && sampler.draw("d.c").is_none());
        sampler.learn(&of(50.0, 1), 2.0);
        assert!(sampler.is_active());
        assert_eq!((sampler.draw("d.c"), sampler.draw("d.other")), (Some([7; 16]), None));
        assert_eq!((sampler.take_executed(), sampler.take_executed()), (1, 0));
        sampler.count("d.c", Kind::Read, 10);
        sampler.learn(&of(25.0, 1), 2.0);
        let row = &sampler.rows(true)[0];
        assert_eq!((row.get_i64("sampledReadsCount"), row.get_i64("sampledReadsBytes")), (Some(1), Some(10)));
        assert_eq!(row.get("samplesPerSecond").and_then(Value::as_f64), Some(25.0));
        assert!(!sampler.rows(false)[0].contains_key("sampledReadsBytes"));
        // Configured anew it counts from nothing; the node's totals stay.
        sampler.learn(&of(25.0, 2), 2.0);
        assert_eq!(sampler.rows(true)[0].get_i64("sampledReadsCount"), Some(0));
        assert_eq!(sampler.status(true, true).get_i64("totalSampledReadsCount"), Some(1));
        sampler.learn(&[], 2.0);
        assert!(!sampler.is_active() && !sampler.knows_any());
    }

    #[test]
    fn a_configuration_and_a_sample_survive_their_documents() {
        let c = Configuration { ns: "d.c".into(), uuid: [1; 16], samples_per_second: 0.5, start_ms: 3 };
        assert_eq!(Configuration::parse(&c.to_document()), Some(c));
        let command = doc! { "filter": { "a": 1 } };
        let s = Sample { id: [2; 16], ns: "d.c".into(), uuid: [1; 16], name: "find".into(), command };
        assert_eq!(Sample::parse(&s.to_document()), Some(s));
    }
}
