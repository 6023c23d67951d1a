//! The sampling of queries in this process: commands are offered to the sampler, samples are handed on, and what is sampled is learnt
//! regularly. [`node::sampling`] says how the parts work together.

use crate::dispatch::{Context, Reply, Request, Roles};
use crate::service::Service;
use document::{Document, Result, Value, doc};
use node::Node;
use node::sampling::samples::PRIMARY_LIMIT;
use node::sampling::take::{self, Taken};
use node::sampling::{Configuration, Sample, Sampler};
use parking_lot::Mutex;
use runtime::Instant;
use sharding::messages::Message;
use sharding::messages::sampling::AskRates;
use sharding::router::body::{Versions, own};
use sharding::router::cluster::{CONFIG, Call};
use std::sync::Arc;
use std::time::Duration;

/// Commands after which a collection may not be the one that was sampled.
const MAY_END: &[&str] =
    &["drop", "dropDatabase", "renameCollection", "reshardCollection", "moveCollection", "unshardCollection"];

#[derive(Default)]
pub struct Sampling {
    pub sampler: Sampler,
    /// When the sampler has told last how many queries it has seen.
    told: Mutex<Option<Instant>>,
}

/// Whether this node chooses queries itself: a router, or a member of a set that is no shard.
pub fn chooses(service: &Service) -> bool {
    matches!(service.role, Roles::ROUTER | Roles::REPLSET)
}
/// Whether this node keeps samples.
pub fn keeps(service: &Service) -> bool {
    service.node.as_ref().is_some_and(|node| node.is_replica_set())
}

/// `serverStatus.queryAnalyzers`.
pub fn status(context: &Context) -> Value {
    let service = &context.service;
    service.sampling.sampler.status(chooses(service), keeps(service)).into()
}

/// Runs a command while queries are sampled.
pub async fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    let name = request.command.name;
    if take::is_query(name)
        && let Some(taken) = take::take(&service.sampling.sampler, name, &request.node)
    {
        let sequences = taken.sequences(request.sequences);
        let body = taken.body(request.body);
        let node = node::Request { db: request.db, body, sequences: &sequences };
        let sampled = Request { node, ..*request };
        crate::dispatch::invoke(context, &sampled, reply).await?;
        hand_on(service, taken);
        return Ok(());
    }
    crate::dispatch::invoke(context, request, reply).await?;
    if MAY_END.contains(&name) {
        // Where this fails, the next regular refresh finds out.
        let _ = refresh(service).await;
    }
    Ok(())
}

/// Hands samples to where they are kept.
fn hand_on(service: &Arc<Service>, taken: Taken) {
    for sample in taken.samples {
        match service.members.router() {
            Ok(router) => {
                service.sampling.sampler.count(&sample.ns, sample.kind(), 0);
                let router = router.clone();
                service.spawn(async move { drop(router.keep_sample(&sample).await) });
            }
            Err(_) => keep(service, &sample),
        }
    }
}

/// Keeps a sample here.
pub fn keep(service: &Service, sample: &Sample) {
    let Some(node) = &service.node else { return };
    if let Some(bytes) = node.samples.query(sample, node.now_ms()) {
        service.sampling.sampler.count(&sample.ns, sample.kind(), bytes);
    }
}

/// Learns anew what is sampled.
///
/// # Errors
/// Those of asking.
pub async fn refresh(service: &Arc<Service>) -> Result<()> {
    let configurations = ask(service).await?;
    let p = &service.parameters;
    service.sampling.sampler.learn(&configurations, p.double("queryAnalysisSamplerBurstMultiplier"));
    if let Some(node) = &service.node {
        let (expire_secs, bytes_max) =
            (p.int("queryAnalysisSampleExpirationSecs"), p.int("queryAnalysisWriterMaxMemoryUsageBytes"));
        node.samples.set(!configurations.is_empty(), expire_secs, bytes_max);
    }
    Ok(())
}

async fn ask(service: &Arc<Service>) -> Result<Vec<Configuration>> {
    let Some(node) = &service.node else {
        let router = service.members.router()?;
        let command = own(&question(service).to_document(), "admin", router.clock(), &Versions::NONE);
        let reply = router.cluster.call(Call::new(CONFIG, command.doc())).await.map_err(|e| e.error)?;
        return Ok(read(&reply.doc().to_document()));
    };
    match service.role {
        Roles::REPLSET if node.is_writable() => shares(service, node, &question(service)).await,
        Roles::REPLSET => {
            let reply = node.run_on_primary("admin", question(service).to_document(), PRIMARY_LIMIT).await?;
            Ok(read(&reply.doc().to_document()))
        }
        Roles::CONFIG => Ok(without_rates(node.query_analyzers()?)),
        _ => {
            let role = service.members.shard()?;
            if role.identity().is_none() {
                return Ok(Vec::new());
            }
            let found = role.remote.find_config("queryAnalyzers", doc! { "mode": "full" }, None).await?;
            Ok(without_rates(found.iter().filter_map(Configuration::of_analyzer).collect()))
        }
    }
}

/// A shard only keeps what routers have chosen.
fn without_rates(all: Vec<Configuration>) -> Vec<Configuration> {
    all.into_iter().map(|c| Configuration { samples_per_second: 0.0, ..c }).collect()
}

/// What this sampler asks.
fn question(service: &Service) -> AskRates {
    let sampling = &service.sampling;
    let now = Instant::now();
    let before = sampling.told.lock().replace(now);
    let seconds = before.map_or(0.0, |before| now.saturating_duration_since(before).as_secs_f64());
    let executed = sampling.sampler.take_executed() as f64;
    let rate = if seconds > 0.0 { executed / seconds } else { 0.0 };
    AskRates { sampler: service.host.clone(), rate }
}

fn read(reply: &Document) -> Vec<Configuration> {
    let list = reply.get_array("configurations").into_iter().flatten();
    list.filter_map(|v| Configuration::parse(v.as_document()?)).collect()
}

/// The rates that are the asking sampler's, on the primary of a set or of the config server.
///
/// # Errors
/// Those of reading and of forgetting collections that are gone.
pub async fn shares(service: &Service, node: &Arc<Node>, question: &AskRates) -> Result<Vec<Configuration>> {
    match service.members.config(AskRates::COMMAND) {
        Ok(config) => config.forget_gone_analyzers().await?,
        Err(_) => forget_gone(node).await?,
    }
    let forget_after = service.parameters.int("queryAnalysisSamplerInActiveThresholdSecs");
    node.query_analyzers_for(
        &question.sampler,
        question.rate,
        Duration::from_secs(forget_after.unsigned_abs()),
    )
}

async fn forget_gone(node: &Arc<Node>) -> Result<()> {
    for known in node.query_analyzers()? {
        let now = node.namespaces.slot(&known.ns).read_unchecked().collection.as_ref().map(|c| c.uuid());
        if now != Some(known.uuid) {
            node.forget_query_analyzer(&known).await?;
        }
    }
    Ok(())
}

/// Learns and writes regularly.
pub async fn start(service: &Arc<Service>) -> Result<()> {
    if !chooses(service) && !keeps(service) {
        return Ok(());
    }
    let own = service.clone();
    let every = |service: &Service, name: &str| {
        Duration::from_secs(service.parameters.int(name).max(1).unsigned_abs())
    };
    service.spawn(async move {
        loop {
            tokio::time::sleep(every(&own, "queryAnalysisSamplerConfigurationRefreshSecs")).await;
            // Whom to ask may be unknown, or away: the next time is soon enough.
            let _ = refresh(&own).await;
        }
    });
    let Some(node) = service.node.clone() else { return Ok(()) };
    let own = service.clone();
    service.spawn(async move {
        loop {
            tokio::time::sleep(every(&own, "queryAnalysisWriterIntervalSecs")).await;
            let _ = node.write_samples().await;
        }
    });
    Ok(())
}
