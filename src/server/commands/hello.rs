//! `hello` and its legacy forms: who this node is, what it can, and a way to wait until that changes.
//!
//! With `topologyVersion` and `maxAwaitTimeMS` the node answers when its version differs from the one given, or when
//! the time is up. If the client set exhaustAllowed, the connection then goes on answering by itself.

use super::client_metadata;
use crate::connection::Entrance;
use crate::dispatch::{After, Command, Context, Reply, Request, Roles};
use crate::options::MAX_WIRE_VERSION;
use crate::topology::{Member, Membership, State, TopologyVersion};
use document::{Doc, Document, Error, ObjectId, Result, ValueRef, bail, doc};
use std::sync::atomic::Ordering;
use std::time::Duration;
use wire::limits::{MAX_MESSAGE, MAX_USER_DOCUMENT};
use wire::op_compressed::negotiate;

pub const ROWS: &[Command] = &[
    Command::future("hello", Roles::ALL, |c, r, reply| Box::pin(run(c, r, reply, false)))
        .takes_no_write_concern()
        .no_auth()
        .ends_with_client()
        .stable_api()
        .quiet()
        .secret(&["speculativeAuthenticate"])
        .help("Describes this node; waits for a change if asked to."),
    Command::future("isMaster", Roles::ALL, |c, r, reply| Box::pin(run(c, r, reply, true)))
        .aliases(&["ismaster"])
        .ends_with_client()
        .takes_no_write_concern()
        .no_auth()
        .stable_api()
        .quiet()
        .secret(&["speculativeAuthenticate"])
        .help("The older form of hello."),
];

/// The largest batch of a write command.
pub const MAX_WRITE_BATCH: i32 = 100_000;

async fn run(context: &Context, request: &Request<'_>, reply: &mut Reply, legacy: bool) -> Result<()> {
    let wait = Wait::parse(request)?;
    check_exhaust(context, request, wait.as_ref())?;
    read_handshake(context, request)?;
    let service_id = meet_balancer(context, request, reply)?;
    context.service.failpoints().pause_operation(&context.operation, "waitInHello", "").await?;
    let mut state = context.service.topology.state();
    // Members go on with one another until the end: its vote may decide who follows it.
    let is_client = request.get("internalClient").is_none();
    if let Some(wait) = wait.as_ref().filter(|_| !is_client || state.check_stays().is_ok()) {
        let changed = wait_for_change(context, wait, &state).await?;
        if is_client {
            check_addresses(&state, &changed, reply)?;
        }
        state = changed;
    }
    if is_client {
        state.check_stays()?;
    }
    let fields = describe(context, request, &state, legacy);
    reply.fields(&fields);
    if let Some(id) = service_id {
        reply.writer().object_id("serviceId", id);
    }
    if fields_of_login(request) {
        // Boxed: only the first hello of a connection carries them.
        reply.fields(&Box::pin(super::sasl::in_hello(context, request)).await?);
    }
    if wait.is_some() && request.exhaust_allowed {
        context.service.connections.exhaust_hellos.increment();
        reply.after = After::Again;
    }
    Ok(())
}

struct Wait {
    known: TopologyVersion,
    longest: Duration,
}

impl Wait {
    fn parse(request: &Request<'_>) -> Result<Option<Wait>> {
        let (version, time) = (request.get("topologyVersion"), request.get("maxAwaitTimeMS"));
        let (version, time) = match (version, time) {
            (None, None) => return Ok(None),
            (Some(version), Some(time)) => (version, time),
            (Some(_), None) => {
                bail!(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
            }
            (None, Some(_)) => {
                bail!(31368, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
            }
        };
        let document =
            version.as_document().ok_or_else(|| request.wrong_type("topologyVersion", version, "object"))?;
        let (id, counter) = (document.get("processId"), document.get("counter").and_then(|v| v.as_i64()));
        let (Some(ValueRef::ObjectId(process_id)), Some(counter)) = (id, counter) else {
            bail!(TYPE_MISMATCH, "topologyVersion must have a processId and a counter");
        };
        if counter < 0 {
            bail!(31372, "topologyVersion must have a non-negative counter");
        }
        match time.as_i64() {
            Some(ms) if ms >= 0 => {
                let longest = Duration::from_millis(ms as u64);
                Ok(Some(Wait { known: TopologyVersion { process_id, counter }, longest }))
            }
            _ => bail!(31373, "maxAwaitTimeMS must be a non-negative integer"),
        }
    }
}

/// A client that wants further replies by themselves has to say how long each may take.
///
/// # Errors
/// 51756, on a router 51763.
fn check_exhaust(context: &Context, request: &Request<'_>, wait: Option<&Wait>) -> Result<()> {
    match request.exhaust_allowed && wait.is_none() {
        false => Ok(()),
        true if context.service.is_router() => {
            bail!(51763, "A hello/isMaster request with exhaust must specify 'maxAwaitTimeMS'")
        }
        true => bail!(51756, "An isMaster or hello request with exhaust must specify 'maxAwaitTimeMS'"),
    }
}

/// A version that this process has not had yet.
///
/// # Errors
/// 31382 on a member of a set, 51764 on a standalone, 51761 on a router.
fn check_counter(known: TopologyVersion, state: &State) -> Result<()> {
    let (theirs, own) = (known.counter, state.version.counter);
    if theirs <= own {
        return Ok(());
    }
    let (code, server) = match &*state.membership {
        Membership::Standalone => (51764, "server"),
        Membership::Router => (51761, "mongos"),
        _ => (31382, "server"),
    };
    Err(Error::new(
        code,
        format!(
            "Received a topology version with counter: {theirs} which is greater than the {server} topology version counter: {own}"
        ),
    ))
}

/// A client that waited may know this member by an address that is none any more.
///
/// # Errors
/// SplitHorizonChange (303), with which the connection ends: the member's addresses have changed, or it was removed.
fn check_addresses(before: &State, now: &State, reply: &mut Reply) -> Result<()> {
    let changed = match (&*before.membership, &*now.membership) {
        (Membership::Member(before), Membership::Member(now)) => {
            let own = |member: &Member| -> Vec<String> {
                member.horizons.iter().map(|horizon| horizon.me.clone()).collect()
            };
            own(before) != own(now)
        }
        (Membership::Member(_), Membership::Removed { .. }) => true,
        _ => false,
    };
    if changed {
        reply.after = After::Close;
        bail!(SPLIT_HORIZON_CHANGE, "Received a reconfig that changed the horizon mappings.");
    }
    Ok(())
}

/// Waits while the node's version is the one the client knows.
async fn wait_for_change(context: &Context, wait: &Wait, state: &State) -> Result<State> {
    if state.version.process_id != wait.known.process_id {
        return Ok(state.clone());
    }
    check_counter(wait.known, state)?;
    let points = context.service.failpoints();
    // That one tells a test that a client waits; the other holds it before it does.
    points.should("waitForHelloResponse");
    points.pause_operation(&context.operation, "hangWhileWaitingForHelloResponse", "").await?;
    let mut changes = context.service.topology.subscribe();
    context.service.connections.awaiting.increment();
    let changed = async {
        // The sender lives as long as the service, so waiting can only end by a change.
        let _ = changes.wait_for(|s| s.version.counter > wait.known.counter).await;
    };
    let waited = context.operation.interruptible(tokio::time::timeout(wait.longest, changed)).await;
    context.service.connections.awaiting.add(-1);
    waited?.ok();
    Ok(context.service.topology.state())
}

/// What the client says of itself; the first hello of a connection carries it.
fn read_handshake(context: &Context, request: &Request<'_>) -> Result<()> {
    if let Some(metadata) = request.get("client") {
        client_metadata::note(context, metadata)?;
    }
    if request.get("hangUpOnStepDown").and_then(|v| v.as_bool()) == Some(false) {
        context.connection.stays_over_rollback.store(true, Ordering::Relaxed);
    }
    if request.get("internalClient").is_some_and(|v| v.as_document().is_some()) {
        context.connection.stays_over_rollback.store(true, Ordering::Relaxed);
        context.connection.claims_internal.store(true, Ordering::Relaxed);
        context.connection.judge_internal(&context.service);
    }
    if asks_to_multiplex(request) {
        context.connection.multiplexed.store(true, Ordering::Relaxed);
    }
    if let Some(theirs) = request.get("compression").and_then(|v| v.as_array()) {
        *context.connection.compressors.lock() = common(context, theirs).into_iter().collect();
    }
    Ok(())
}

/// The first hello of a client behind a load balancer says that it knows of it, and is told which router it has reached. `None`
/// for any other hello.
///
/// # Errors
/// LoadBalancerSupportMismatch (354), with which the connection ends.
fn meet_balancer(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<Option<ObjectId>> {
    let (connection, service) = (&context.connection, &context.service);
    let knows = request.get("loadBalanced").and_then(|v| v.as_bool()).unwrap_or(false);
    if connection.entrance != Entrance::LoadBalancer || connection.knows_balancer.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if !knows {
        reply.after = After::Close;
        bail!(
            LOAD_BALANCER_SUPPORT_MISMATCH,
            "The server is being accessed through a load balancer, but this driver does not have load balancing enabled"
        );
    }
    connection.knows_balancer.store(true, Ordering::Relaxed);
    service.connections.balanced.increment();
    Ok(Some(service.service_id))
}

fn fields_of_login(request: &Request<'_>) -> bool {
    request.body.get("saslSupportedMechs").is_some() || request.get("speculativeAuthenticate").is_some()
}

/// Whether many requests at a time are to be served on this connection: asked for by nodes of this kind only, and done once it has proven
/// to be one.
fn asks_to_multiplex(request: &Request<'_>) -> bool {
    request.get("multiplex").and_then(|v| v.as_bool()) == Some(true)
}

fn common(context: &Context, theirs: Doc<'_>) -> Vec<wire::Compressor> {
    negotiate(&context.service.options.compressors, theirs)
}

fn describe(context: &Context, request: &Request<'_>, state: &State, legacy: bool) -> Document {
    let service = &context.service;
    // "hello" sent as OP_QUERY or with a legacy name answers under the name that was used.
    let mut d = doc! { "helloOk": true };
    d.push("topologyVersion", state.version.to_document());
    let server_name = context.connection.server_name.get().map(String::as_str);
    d.0.extend(state.membership.hello_fields(legacy, server_name));
    if service.role == Roles::CONFIG {
        d.push("configsvr", 2);
    }
    if matches!(*state.membership, Membership::Member(_))
        && let Some(last) = service.times().and_then(|t| t.last_write())
    {
        d.push("lastWrite", last.to_document());
    }
    d.push("maxBsonObjectSize", MAX_USER_DOCUMENT as i32);
    d.push("maxMessageSizeBytes", MAX_MESSAGE as i32);
    d.push("maxWriteBatchSize", MAX_WRITE_BATCH);
    d.push("localTime", document::Value::DateTime(crate::log::now_millis()));
    d.push(
        "logicalSessionTimeoutMinutes",
        service.parameters.int("localLogicalSessionTimeoutMinutes") as i32,
    );
    d.push("connectionId", i32::try_from(context.connection.id).unwrap_or(i32::MAX));
    d.push("minWireVersion", 0);
    d.push("maxWireVersion", MAX_WIRE_VERSION);
    d.push("readOnly", false);
    if let Some(theirs) = request.get("compression").and_then(|v| v.as_array()) {
        let names: Vec<String> = common(context, theirs).into_iter().map(|c| c.name().to_string()).collect();
        if !names.is_empty() {
            d.push("compression", names);
        }
    }
    if asks_to_multiplex(request) {
        d.push("multiplex", true);
    }
    d
}
