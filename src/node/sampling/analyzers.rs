//! `config.queryAnalyzers` and the samplers: which collections are sampled, and how a rate is shared out.
//!
//! A document is `{_id: ns, collUuid, mode, samplesPerSecond, startTime, stopTime}`. Each sampler asks regularly for its share and says
//! how many queries it has seen; a sampler that has not asked for a while counts no more. A share is in proportion to the queries, and
//! equal while there were none.

use super::Configuration;
use crate::Node;
use crate::local::LocalClient;
use document::{Document, Result, Value, bail, doc};
use parking_lot::Mutex;
use runtime::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// DO NOT CHANGE: clients read it.
pub const COLLECTION: &str = "config.queryAnalyzers";

/// What `configureQueryAnalyzer` asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Full { samples_per_second: f64 },
    Off,
}

/// The primary's knowledge of samplers.
#[derive(Default)]
pub struct Analyzers {
    samplers: Mutex<BTreeMap<String, Seen>>,
    /// Held while a document is read and written.
    one: tokio::sync::Mutex<()>,
}

/// When a sampler has asked last, and how many queries a second it had.
struct Seen {
    at: Instant,
    rate: f64,
}

impl Analyzers {
    /// The share of every rate that is this sampler's.
    fn share(&self, name: &str, rate: f64, forget_after: Duration, now: Instant) -> f64 {
        let mut samplers = self.samplers.lock();
        samplers.insert(name.to_string(), Seen { at: now, rate });
        samplers.retain(|_, s| now.saturating_duration_since(s.at) < forget_after);
        let total: f64 = samplers.values().map(|s| s.rate).sum();
        match total > 0.0 {
            true => rate / total,
            false => 1.0 / samplers.len().max(1) as f64,
        }
    }
}

/// Refuses what has no queries of its own, by its type in listCollections.
///
/// # Errors
/// CommandNotSupportedOnView (166), IllegalOperation (20) for a time series.
pub fn check_type(ns: &str, kind: Option<&str>) -> Result<()> {
    match kind {
        Some("view") => bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "Operation not supported for a view: {ns}"),
        Some("timeseries") => {
            bail!(ILLEGAL_OPERATION, "Operation not supported for a timeseries collection: {ns}")
        }
        _ => Ok(()),
    }
}

/// `{mode, samplesPerSecond}` of a document.
fn configuration(d: &Document) -> Document {
    let members = d.iter().filter(|(name, _)| matches!(*name, "mode" | "samplesPerSecond"));
    members.map(|(name, v)| (name.to_string(), v.clone())).collect()
}

/// Whether a document says that queries are sampled.
fn is_on(d: &Document) -> bool {
    d.get_str("mode") == Some("full")
}

impl Node {
    /// Configures the sampling of a collection; the reply of `configureQueryAnalyzer` without `ok`.
    ///
    /// # Errors
    /// Those of the write.
    pub async fn configure_query_analyzer(
        self: &Arc<Self>,
        ns: &str,
        uuid: [u8; 16],
        mode: Mode,
    ) -> Result<Document> {
        let _one = self.analyzers.one.lock().await;
        let local = LocalClient::new(self.clone());
        let found = local.find_one(COLLECTION, &doc! { "_id": ns })?;
        let old = found.filter(|d| d.get("collUuid").and_then(Value::as_uuid) == Some(uuid));
        let now = Value::DateTime(self.now_ms());
        let running = old.clone().filter(is_on);
        let (new, shown) = match (mode, running) {
            (Mode::Full { samples_per_second }, running) => {
                let start = running.and_then(|d| d.get("startTime").cloned()).unwrap_or(now);
                let new = doc! { "mode": "full", "samplesPerSecond": samples_per_second };
                let mut d = doc! { "_id": ns, "collUuid": Value::uuid(uuid) };
                d.0.extend(new.0.clone());
                d.push("startTime", start);
                local.put(COLLECTION, &d).await?;
                (new, old)
            }
            (Mode::Off, Some(mut d)) => {
                d.insert("mode", "off");
                d.insert("stopTime", now);
                local.put(COLLECTION, &d).await?;
                (doc! { "mode": "off" }, old)
            }
            (Mode::Off, None) => (doc! { "mode": "off" }, None),
        };
        let mut reply = doc! { "newConfiguration": new };
        if let Some(old) = shown {
            reply.push("oldConfiguration", configuration(&old));
        }
        Ok(reply)
    }

    /// The collections that are sampled, with all of their rates.
    ///
    /// # Errors
    /// Those of the read.
    pub fn query_analyzers(self: &Arc<Self>) -> Result<Vec<Configuration>> {
        let all = LocalClient::new(self.clone()).find(COLLECTION, &doc! { "mode": "full" })?;
        Ok(all.iter().filter_map(Configuration::of_analyzer).collect())
    }

    /// The same with the share of the rates that is `sampler`'s, which has seen `rate` queries a second.
    ///
    /// # Errors
    /// Those of the read.
    pub fn query_analyzers_for(
        self: &Arc<Self>,
        sampler: &str,
        rate: f64,
        forget_after: Duration,
    ) -> Result<Vec<Configuration>> {
        let mut all = self.query_analyzers()?;
        let share = self.analyzers.share(sampler, rate, forget_after, Instant::now());
        all.iter_mut().for_each(|c| c.samples_per_second *= share);
        Ok(all)
    }

    /// Ends the sampling of a collection that is gone, or has another name by now.
    ///
    /// # Errors
    /// Those of the write.
    pub async fn forget_query_analyzer(self: &Arc<Self>, gone: &Configuration) -> Result<()> {
        let _one = self.analyzers.one.lock().await;
        let this = doc! { "_id": gone.ns.as_str(), "collUuid": { "$eq": Value::uuid(gone.uuid) } };
        LocalClient::new(self.clone()).delete(COLLECTION, &this).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_shared_by_the_queries_of_each_sampler() {
        let (analyzers, start) = (Analyzers::default(), Instant::now());
        let share = |name: &str, rate: f64, s: u64| {
            analyzers.share(name, rate, Duration::from_secs(300), start + Duration::from_secs(s))
        };
        assert_eq!(share("a", 0.0, 0), 1.0);
        assert_eq!(share("b", 0.0, 1), 0.5);
        assert_eq!(share("a", 30.0, 10), 1.0);
        assert_eq!(share("b", 10.0, 11), 0.25);
        assert_eq!(share("a", 30.0, 20), 0.75);
        // The other has not asked for a while.
        assert_eq!(share("a", 30.0, 400), 1.0);
    }
}
