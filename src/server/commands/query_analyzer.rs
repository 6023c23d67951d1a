//! `configureQueryAnalyzer`, and what nodes say to one another about sampled queries.

use super::crud::node;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::sampling::{keep, refresh, shares};
use document::{Document, Result, Value, bail, err};
use node::Node;
use node::auth::Action as A;
use node::request::check_collection_name;
use node::sampling::Sample;
use node::sampling::analyzers::{Mode, check_type};
use node::shape::Kind::{Number, OneOf};
use node::shape::{Shape, field, required};
use sharding::messages::Message;
use sharding::messages::sampling::{AskRates, KeepSample};
use sharding::router::single;
use std::sync::Arc;

/// The most samples a second; tests may ask for more.
const RATE_MAX: f64 = 50.0;

pub const ROWS: &[Command] = &[
    Command::future("configureQueryAnalyzer", Roles::ALL, |c, r, reply| Box::pin(configure(c, r, reply)))
        .needs(Needs::Namespace(&[A::ConfigureQueryAnalyzer]))
        .admin_only()
        .primary_only()
        .takes_no_write_concern()
        .shape(&SHAPE)
        .help("Begins or ends the sampling of a collection's queries."),
    Command::future("_refreshQueryAnalyzerConfiguration", Roles::SETS, |c, r, reply| {
        Box::pin(tell_shares(c, r, reply))
    })
    .admin_only()
    .primary_only()
    .help("Internal: the rates at which a sampler is to sample queries."),
    Command::sync("_shardsvrKeepSampledQuery", Roles::SETS, keep_sample)
        .admin_only()
        .primary_only()
        .help("Internal: keeps a query that a router has sampled."),
];

const SHAPE: Shape = Shape {
    name: "configureQueryAnalyzer",
    generic: true,
    fields: &[required("mode", OneOf(&["full", "off"])), field("samplesPerSecond", Number)],
};

fn asked<'a>(context: &Context, request: &Request<'a>) -> Result<(&'a str, Mode)> {
    let ns = request.target();
    let ns = ns.as_str().ok_or_else(|| request.wrong_type("configureQueryAnalyzer", ns, "string"))?;
    let (db, collection) =
        ns.split_once('.').ok_or_else(|| err!(INVALID_NAMESPACE, "Invalid namespace specified '{ns}'"))?;
    check_collection_name(db, collection)?;
    if document::is_internal_database(db) || collection.starts_with("system.") {
        bail!(ILLEGAL_OPERATION, "Cannot run against an internal collection");
    }
    let rate = request.get("samplesPerSecond").and_then(|v| v.as_f64());
    let full = request.body.get_str("mode") == Some("full");
    match rate {
        None if !full => Ok((ns, Mode::Off)),
        Some(_) if !full => {
            bail!(INVALID_OPTIONS, "Cannot specify 'samplesPerSecond' when 'mode' is \"off\"")
        }
        None => bail!(INVALID_OPTIONS, "'samplesPerSecond' must be specified when 'mode' is not \"off\""),
        Some(rate) if rate <= 0.0 || rate.is_nan() => {
            bail!(INVALID_OPTIONS, "'samplesPerSecond' must be greater than 0")
        }
        Some(rate) if rate > RATE_MAX && !context.service.parameters.test_commands() => {
            bail!(INVALID_OPTIONS, "'samplesPerSecond' must be less than or equal to {RATE_MAX}")
        }
        Some(samples_per_second) => Ok((ns, Mode::Full { samples_per_second })),
    }
}

async fn configure(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let service = &context.service;
    let name = request.command.name;
    match service.role {
        Roles::STANDALONE => {
            bail!(ILLEGAL_OPERATION, "{name} command is not supported on a standalone mongod")
        }
        Roles::SHARD => {
            bail!(ILLEGAL_OPERATION, "Cannot run {name} command directly against a shardsvr mongod")
        }
        _ => {}
    }
    let (ns, mode) = asked(context, request)?;
    let done = match service.members.router() {
        Ok(router) => {
            let task = router.task(&context.operation, request.node);
            let made = single::on_config(&task).await?.to_document();
            let told = |member: &str| matches!(member, "newConfiguration" | "oldConfiguration");
            made.into_iter().filter(|(member, _)| told(member)).collect()
        }
        Err(_) => match service.members.config(name) {
            Ok(config) => config.configure_query_analyzer(ns, mode).await?,
            Err(_) => on_set(node(context)?, ns, mode).await?,
        },
    };
    // The node that was asked samples at the new rate at once; others learn of it in time.
    let _ = refresh(service).await;
    reply.fields(&done);
    Ok(())
}

async fn on_set(node: &Arc<Node>, ns: &str, mode: Mode) -> Result<Document> {
    let slot = node.namespaces.slot(ns);
    let (uuid, kind) = {
        let state = slot.read_unchecked();
        let uuid = state.collection.as_ref().map(|c| c.uuid());
        (uuid, state.view.is_some().then_some("view"))
    };
    let kind = if node::timeseries::of(node, &slot).is_some() { Some("timeseries") } else { kind };
    check_type(ns, kind)?;
    let uuid = uuid.ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "The namespace does not exist: {ns}"))?;
    node.configure_query_analyzer(ns, uuid, mode).await
}

async fn tell_shares(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if context.service.role == Roles::SHARD {
        bail!(ILLEGAL_OPERATION, "{} must be sent to the config server", request.command.name);
    }
    let question = AskRates::parse(request.body)?;
    let shares = shares(&context.service, node(context)?, &question).await?;
    let shares = shares.iter().map(|c| Value::Document(c.to_document())).collect();
    reply.fields(&document::doc! { "configurations": Value::Array(shares) });
    Ok(())
}

fn keep_sample(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    let KeepSample { sample } = KeepSample::parse(request.body)?;
    match Sample::parse(&sample) {
        Some(sample) => keep(&context.service, &sample),
        None => bail!(BAD_VALUE, "not a sampled query"),
    }
    Ok(())
}
