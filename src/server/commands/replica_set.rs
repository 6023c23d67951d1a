//! The commands of a replica set, over `node::replication`: initiate, configure, step down, report; and the defaults of
//! read and write concern, which belong to the set.
//!
//! At start-up the node's standing is bound to what `hello` shows: each change is published and logged before the
//! command that caused it answers.

use super::crud::{acknowledge, conclude, node};
use crate::auth::needs;
use crate::dispatch::{BoxFuture, Command, Context, Needs, Reply, Request, Roles};
use crate::options::{FEATURE_COMPATIBILITY_VERSION, hours_to_ms};
use crate::peers::Members;
use crate::service::Service;
use crate::topology::{Horizon, Member, Membership, election_id};
use document::{Doc, Document, Result, Timestamp, Value, ValueRef, bail, doc, err};
use node::auth::Action as A;
use node::default_concerns;
use node::local::LocalClient;
use node::operation::{WriteAck, WriteConcern};
use node::parameters::Parameters;
use node::replication::{
    Change, MemberConfig, MemberState, PrimaryService, SetConfig, Standing, StandingObserver,
};
use node::shape::{Kind, Shape, field};
use runtime::Instant;
use sharding::remote::Target;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub const ROWS: &[Command] = &[
    Command::future("replSetInitiate", Roles::MONGOD, |c, r, reply| Box::pin(initiate(c, r, reply)))
        .needs(Needs::Cluster(&[A::ReplSetConfigure]))
        .admin_only()
        .help("Makes a replica set of this node."),
    Command::sync("replSetGetStatus", Roles::MONGOD, status)
        .needs(Needs::Cluster(&[A::ReplSetGetStatus]))
        .admin_only()
        .help("The state of the set."),
    Command::sync("replSetGetStatus", Roles::ROUTER, |_, _, _| Err(of_no_router()))
        .needs(Needs::Cluster(&[A::ReplSetGetStatus]))
        .admin_only()
        .help("Refused: a router is in no set."),
    Command::future("replSetGetConfig", Roles::MONGOD, |c, r, reply| Box::pin(config(c, r, reply)))
        .needs(Needs::Cluster(&[A::ReplSetGetConfig]))
        .admin_only()
        .help("The configuration of the set."),
    Command::future("replSetReconfig", Roles::MONGOD, |c, r, reply| Box::pin(reconfig(c, r, reply)))
        .needs(Needs::Cluster(&[A::ReplSetConfigure]))
        .admin_only()
        .help("Replaces the configuration of the set."),
    Command::future("replSetStepDown", Roles::MONGOD, |c, r, reply| Box::pin(step_down(c, r, reply)))
        .needs(Needs::Cluster(&[A::ReplSetStateChange]))
        .admin_only()
        .help("Makes the primary a secondary for a while."),
    Command::future("replSetStepUp", Roles::MONGOD, |c, r, reply| Box::pin(step_up(c, r, reply)))
        .needs(Needs::Cluster(&[A::ReplSetStateChange]))
        .admin_only()
        .help("Makes this member primary."),
    Command::future("replSetFreeze", Roles::MONGOD, |c, r, reply| Box::pin(freeze(c, r, reply)))
        .needs(Needs::Cluster(&[A::ReplSetStateChange]))
        .admin_only()
        .help("Holds off elections for a while."),
    Command::sync("replSetMaintenance", Roles::MONGOD, maintenance)
        .needs(Needs::Cluster(&[A::ReplSetStateChange]))
        .admin_only()
        .help("Takes a secondary out of service."),
    Command::sync("replSetSyncFrom", Roles::MONGOD, sync_from)
        .needs(Needs::Cluster(&[A::ReplSetStateChange]))
        .admin_only()
        .help("Chooses whom a secondary follows."),
    Command::sync("replSetResizeOplog", Roles::MONGOD, resize_oplog)
        .needs(Needs::Cluster(&[A::ReplSetResizeOplog]))
        .admin_only()
        .help("Sets the size of the oplog."),
    Command::sync("replSetGetRBID", Roles::MONGOD, rollback_id)
        .needs(Needs::Cluster(&[A::Internal]))
        .admin_only()
        .help("Counts rollbacks."),
    Command::sync("_isSelf", Roles::MONGOD, is_self)
        .no_auth()
        .admin_only()
        .help("Says which process this is: by it a member finds itself behind an address."),
    Command::sync("replSetAbortPrimaryCatchUp", Roles::MONGOD, abort_catch_up)
        .needs(Needs::Cluster(&[A::ReplSetStateChange]))
        .admin_only()
        .help("Ends the catching up of a new primary."),
    Command::future("replSetTest", Roles::MONGOD, |c, r, reply| Box::pin(test_set(c, r, reply)))
        .needs(Needs::Cluster(&[A::Internal]))
        .admin_only()
        .test_only()
        .help("Waits until this member is in a state, asks the others how they are, or says what a restart keeps."),
    Command::future("applyOps", Roles::MONGOD, |c, r, reply| Box::pin(apply_ops(c, r, reply)))
        .needs(Needs::Asked(needs::applies_ops))
        .write()
        .help("Applies entries of an oplog."),
    Command::future("appendOplogNote", Roles::MONGOD, |c, r, reply| Box::pin(append_note(c, r, reply)))
        .needs(Needs::Cluster(&[A::AppendOplogNote]))
        .write()
        .admin_only()
        .help("Writes a no-op entry into the oplog."),
    Command::sync("getDefaultRWConcern", Roles::MONGOD, get_defaults)
        .needs(Needs::Cluster(&[A::GetDefaultRWConcern]))
        .admin_only()
        .takes_no_write_concern()
        .shape(&GET_DEFAULTS)
        .help("The default read and write concern."),
    Command::future("setDefaultRWConcern", Roles::MONGOD, |c, r, reply| Box::pin(set_defaults(c, r, reply)))
        .needs(Needs::Cluster(&[A::SetDefaultRWConcern]))
        .write()
        .admin_only()
        .help("Sets the default read and write concern."),
];

/// Binds the node's standing to what clients see, and takes up an earlier configuration.
pub fn start(service: &Arc<Service>) -> BoxFuture<'_, Result<()>> {
    Box::pin(async move {
        let Some(node) = service.node.clone() else { return Ok(()) };
        node.replication.observe(Arc::new(Publisher(Arc::downgrade(service))));
        let (own, parameters) = (Arc::downgrade(&node), service.parameters.clone());
        let ttl = PrimaryService::task("ttl", move || expire(own.clone(), parameters.clone()));
        // A member's documents expire by its set's log; deletions of its own would make it differ.
        if !node.is_detached {
            node.replication.services.register(ttl).await?;
            let own = Arc::downgrade(&node);
            let temporary =
                PrimaryService::task("temporary collections", move || drop_temporary(own.clone()));
            node.replication.services.register(temporary).await?;
        }
        let (own, parameters) = (Arc::downgrade(&node), service.parameters.clone());
        let noops = PrimaryService::task("noops", move || write_noops(own.clone(), parameters.clone()));
        if node.is_replica_set() {
            node.replication.services.register(noops).await?;
            node.replication.services.register(crate::flow_control::service(service)).await?;
        }
        if !node.is_replica_set() {
            return node.ensure_version_document(FEATURE_COMPATIBILITY_VERSION).await;
        }
        node.replication.reach_by(Members::new(service));
        let own = Arc::downgrade(&node);
        node.replication.services.register(version_document(own)).await?;
        node.resume_set().await?;
        Ok(())
    })
}

/// Each primary sees to it that the set has its feature compatibility document.
fn version_document(node: Weak<node::Node>) -> PrimaryService {
    PrimaryService {
        name: "featureCompatibilityVersion",
        recover: Arc::new(move || {
            let node = node.clone();
            Box::pin(async move {
                match node.upgrade() {
                    Some(node) => node.ensure_version_document(FEATURE_COMPATIBILITY_VERSION).await,
                    None => Ok(()),
                }
            })
        }),
        run: Arc::new(|| Box::pin(async {})),
        halt: Arc::new(|| {}),
    }
}

/// Shows a new standing to clients and in the log.
struct Publisher(Weak<Service>);

impl StandingObserver for Publisher {
    fn changed(&self, from: &Standing, to: &Standing) {
        let Some(service) = self.0.upgrade() else { return };
        service.topology.publish(membership(to));
        if from.state == MemberState::Primary && to.state != MemberState::Primary {
            // Their outcome is not known: the client asks the next primary.
            service.operations.end_writes("stepDown", document::codes::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE);
        }
        if to.state == MemberState::Rollback && from.state != to.state {
            service.end_clients();
        }
        if from.config != to.config {
            let attr = doc! { "config": to.config.as_ref().map(|c| c.document()) };
            service.log.info("REPL", 21392, "ReplCoord", "New replica set config in use", attr);
        }
        if to.writable && !from.writable {
            service.operations.note_transition("stepUp", 0);
            let text = "Transition to primary complete; database writes are now permitted";
            service.log.info("REPL", 21331, "OplogApplier-0", text, doc! { "term": to.term });
        }
        if from.state == to.state {
            return;
        }
        // A rollback or an initial sync, which change users without an observer, come with a change of state.
        service.auth.invalidate();
        service.members.state_changed();
        let attr = doc! { "newState": to.state.name(), "oldState": from.state.name() };
        service.log.info("REPL", 21358, "ReplCoord", "Replica set state transition", attr);
    }
}

fn membership(standing: &Standing) -> Membership {
    let Some(config) = &standing.config else { return Membership::Uninitiated };
    let Some(own) = standing.own() else {
        return Membership::Removed { set_name: config.name().to_string() };
    };
    let leads = standing.state == MemberState::Primary;
    let visible = || config.members().iter().filter(|m| !m.hidden && m.delay_secs == 0);
    let hosts =
        |f: &dyn Fn(&MemberConfig) -> bool| visible().filter(|m| f(m)).map(|m| m.host.clone()).collect();
    let drains = leads && !standing.writable && !standing.stepping_down;
    Membership::Member(Member {
        set_name: config.name().to_string(),
        set_version: config.version(),
        hosts: hosts(&|m| m.is_electable()),
        passives: hosts(&|m| !m.arbiter && m.priority == 0.0),
        arbiters: hosts(&|m| m.arbiter),
        me: own.host.clone(),
        primary: standing.primary.filter(|_| !leads || standing.writable).and_then(|i| standing.host(i)),
        is_primary: standing.writable,
        is_secondary: standing.state == MemberState::Secondary || drains,
        arbiter_only: own.arbiter,
        passive: !own.arbiter && own.priority == 0.0,
        hidden: own.hidden,
        delay_secs: own.delay_secs,
        without_indexes: !own.build_indexes,
        tags: Some(own.tags.clone()).filter(|t| !t.is_empty()),
        horizons: horizons(config, own),
        term: standing.term,
        election_id: standing.writable.then(|| election_id(standing.term)),
    })
}

fn horizons(config: &SetConfig, own: &MemberConfig) -> Vec<Horizon> {
    let of = |name: &String| {
        let address = |m: &MemberConfig| Some((m.host.clone(), m.horizons.get(name)?.clone()));
        config.members().iter().filter_map(address).collect()
    };
    own.horizons.iter().map(|(name, me)| Horizon { me: me.clone(), addresses: of(name) }).collect()
}

/// While nothing else is written the cluster time must move on, or readers that wait for a later one wait forever.
async fn write_noops(node: Weak<node::Node>, parameters: Arc<Parameters>) {
    let seconds = parameters.int("periodicNoopIntervalSecs").max(1) as u64;
    if !parameters.bool("writePeriodicNoops") {
        return;
    }
    let mut last = None;
    loop {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let Some(node) = node.upgrade() else { return };
        let now = Some(node.log.last_optime());
        if now == last && node.log.health().is_ok() {
            // One that comes when the reign has just ended is not needed.
            drop(node.append_noop(doc! { "msg": "periodic noop" }));
        }
        last = Some(node.log.last_optime());
    }
}

/// Not before the reign begins: a prepared transaction that keeps one of them is decided in this one.
async fn drop_temporary(node: Weak<node::Node>) {
    if let Some(node) = node.upgrade() {
        // What fails is dropped when the next reign begins.
        drop(node::ddl::collections::drop_temporary(&node).await);
    }
}

/// The expiry of documents, for one reign.
async fn expire(node: Weak<node::Node>, parameters: Arc<Parameters>) {
    if let Some(node) = node.upgrade() {
        node::ttl::monitor(node, parameters).await;
    }
}

async fn initiate(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let (service, node) = (&context.service, node(context)?);
    let Some(name) = node.options.replica_set.clone() else {
        bail!(NO_REPLICATION_ENABLED, "This node was not started with replication enabled.")
    };
    node.check_not_initiated()?;
    let given = match request.target() {
        ValueRef::Document(d) if !d.is_empty() => Some(d.to_document()),
        ValueRef::Document(_) | ValueRef::Null | ValueRef::Undefined => None,
        v if v.is_number() || v.as_bool().is_some() => None,
        other => return Err(request.wrong_type("replSetInitiate", other, "object")),
    };
    let chosen = match &given {
        Some(d) => d.clone(),
        None => {
            let me = own_address(service);
            reply.fields(&doc! {
                "info2": "no configuration specified. Using a default configuration for the set",
                "me": me.as_str(),
            });
            SetConfig::default_for(&name, &me)
        }
    };
    SetConfig::check_given(&chosen)?;
    let mut config = SetConfig::parse_first(&chosen)?;
    check_role(service, &mut config)?;
    if let Some(text) = too_many_arbiters(service, &config) {
        bail!(INVALID_REPLICA_SET_CONFIG, "{text}");
    }
    if config.set_id().is_none() {
        config.set_set_id(Value::ObjectId(node.new_object_id()));
    }
    node.initiate(config).await
}

/// Arbiters together elect a primary that lacks what a majority of the copies has.
fn too_many_arbiters(service: &Service, config: &SetConfig) -> Option<&'static str> {
    let allowed = config.arbiters() <= 1 || service.parameters.bool("allowMultipleArbiters");
    (!allowed).then_some(
        "Multiple arbiters are not allowed unless all nodes were started with --setParameter 'allowMultipleArbiters=true'",
    )
}

/// The address under which a node without configuration names itself: the host's name if it listens to the network.
fn own_address(service: &Service) -> String {
    let loopback = |ip: &String| {
        ip == "localhost"
            || ip.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || ip.starts_with('/')
    };
    if service.options.bind_ip.iter().all(loopback) {
        format!("localhost:{}", service.port)
    } else {
        service.host.clone()
    }
}

fn check_role(service: &Service, config: &mut SetConfig) -> Result<()> {
    if service.role == Roles::CONFIG {
        config.set_config_server();
    } else if config.is_config_server() {
        bail!(
            INVALID_REPLICA_SET_CONFIG,
            "Nodes being used for config servers must be started with the --configsvr flag"
        );
    }
    Ok(())
}

/// Shells show in their prompt what `info` says.
fn of_no_router() -> document::Error {
    err!(COMMAND_FAILED, "replSetGetStatus is not supported through mongos")
        .with_info(doc! { "info": "mongos" })
}

fn status(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["initialSync"])?;
    let copy = request.bool("initialSync")?.unwrap_or(true);
    reply.fields(&node(context)?.set_status(context.service.uptime().as_secs() as i64, copy)?);
    Ok(())
}

async fn config(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["commitmentStatus", "$_internalIncludeNewlyAdded"])?;
    let newly_added = request.bool("$_internalIncludeNewlyAdded")?.unwrap_or(false);
    if newly_added && !context.service.parameters.test_commands() {
        bail!(
            INVALID_OPTIONS,
            "The '$_internalIncludeNewlyAdded' option is only supported when testing commands are enabled"
        );
    }
    let node = node(context)?;
    reply.fields(&doc! { "config": node.config_document(newly_added)? });
    if request.bool("commitmentStatus")? == Some(true) {
        reply.fields(&doc! { "commitmentStatus": node.is_config_committed().await? });
    }
    Ok(())
}

async fn reconfig(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["force"])?;
    let node = node(context)?;
    // Asked first: a node without a set says so whatever it was given.
    node.set_config()?;
    let Some(given) = request.target().as_document() else {
        bail!(BAD_VALUE, "no configuration specified");
    };
    let given = given.to_document();
    SetConfig::check_given(&given)?;
    let mut config = SetConfig::parse_next(&given)?;
    if service_is_config(context) && !config.is_config_server() {
        check_role(&context.service, &mut config)?;
    }
    if let Some(text) = too_many_arbiters(&context.service, &config) {
        bail!(NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, "{text}");
    }
    let force = request.bool("force")?.unwrap_or(false);
    let limit =
        context.operation.deadline.map_or(RECONFIG_LIMIT, |d| d.saturating_duration_since(Instant::now()));
    let change = match force {
        true => Change::Forced,
        false => {
            let current = node.replication.standing().config.clone();
            let changes = current.is_some_and(|current| config.keep_implicit_concern(&current).is_err());
            Change::Safe { cluster_default: changes && has_cluster_default(&context.service).await? }
        }
    };
    node.reconfigure(config, change, limit).await
}

/// Whether this node is of a shard whose cluster has a default write concern: only the config server knows.
async fn has_cluster_default(service: &Service) -> Result<bool> {
    let Some(shard) = service.members.shard().ok().filter(|s| s.identity().is_some()) else {
        return Ok(false);
    };
    let defaults = shard.remote.admin(Target::Config, doc! { "getDefaultRWConcern": 1 }).await?;
    Ok(defaults.get_str("defaultWriteConcernSource") == Some("global"))
}

/// How long a reconfiguration waits for majorities where the client does not say.
const RECONFIG_LIMIT: Duration = Duration::from_secs(60);

fn service_is_config(context: &Context) -> bool {
    context.service.role == Roles::CONFIG
}

/// Refuses on a node that is no member of an initiated set.
fn member(context: &Context) -> Result<Arc<Standing>> {
    let node = node(context)?;
    node.set_config()?;
    Ok(node.replication.standing())
}

async fn step_down(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["force", "secondaryCatchUpPeriodSecs"])?;
    let force = request.bool("force")?.unwrap_or(false);
    let done = step_down_as_asked(context, request, force).await;
    if force {
        node(context)?.note_forced_step_down(done.is_ok());
    }
    done
}

async fn step_down_as_asked(context: &Context, request: &Request<'_>, force: bool) -> Result<()> {
    let standing = member(context)?;
    let seconds = match request.target().as_f64().map_or(0, |f| f as i64) {
        0 => 60,
        n if n < 0 => bail!(BAD_VALUE, "stepdown period must be a positive integer"),
        n => n,
    };
    let catch_up = request.integer("secondaryCatchUpPeriodSecs")?.unwrap_or(if force { 0 } else { 10 });
    if catch_up < 0 {
        bail!(BAD_VALUE, "secondaryCatchUpPeriodSecs period must be a positive or absent");
    }
    if seconds < catch_up {
        bail!(BAD_VALUE, "stepdown period must be longer than secondaryCatchUpPeriodSecs");
    }
    if standing.state != MemberState::Primary {
        bail!(NOT_WRITABLE_PRIMARY, "not primary so can't step down");
    }
    node(context)?.step_down(&context.operation, seconds as u64, catch_up as u64, force).await
}

async fn step_up(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["skipDryRun"])?;
    member(context)?;
    // One that is about to end leads nobody.
    context.service.topology.state().check_stays()?;
    node(context)?.step_up(request.bool("skipDryRun")?.unwrap_or(false)).await
}

async fn freeze(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    member(context)?;
    let seconds = request.target().as_f64().map_or(0, |f| f as i64);
    node(context)?.freeze_elections(seconds.max(0) as u64).await?;
    match seconds {
        0 => reply.fields(&doc! { "info": "unfreezing" }),
        1 => reply.fields(&doc! { "warning": "you really want to freeze for only 1 second?" }),
        _ => {}
    }
    Ok(())
}

fn maintenance(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    member(context)?;
    node(context)?.set_maintenance(request.target().truthy())
}

/// A source that is further behind is warned of.
const SOURCE_LAG_SECS: u64 = 10;

fn sync_from(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let standing = member(context)?;
    let host = request.target().as_str().unwrap_or("");
    match standing.state {
        MemberState::Primary => bail!(NOT_SECONDARY, "primaries don't sync"),
        MemberState::Arbiter => bail!(NOT_SECONDARY, "arbiters don't sync"),
        MemberState::Removed => bail!(NOT_SECONDARY, "removed nodes don't sync"),
        _ => {}
    }
    let index = standing.config.as_ref().and_then(|c| c.index_of_host(host));
    let Some(index) = index else {
        bail!(NODE_NOT_FOUND, "Could not find member \"{host}\" in replica set");
    };
    if Some(index) == standing.me {
        bail!(INVALID_OPTIONS, "I cannot sync from myself");
    }
    let other = standing.config.as_ref().and_then(|c| c.members().get(index));
    if other.is_some_and(|m| m.arbiter) {
        bail!(INVALID_OPTIONS, "Cannot sync from \"{host}\" because it is an arbiter");
    }
    let builds = standing.own().is_some_and(|own| own.build_indexes);
    if builds && other.is_some_and(|m| !m.build_indexes) {
        bail!(INVALID_OPTIONS, "Cannot sync from \"{host}\" because it does not build indexes");
    }
    let votes = standing.own().is_some_and(|own| own.votes);
    if votes && other.is_some_and(|m| !m.votes) {
        bail!(INVALID_OPTIONS, "Cannot sync from \"{host}\" because it is not a voter");
    }
    let node = node(context)?;
    let Some(peer) = node.replication.peer(index).filter(|peer| peer.up) else {
        bail!(HOST_UNREACHABLE, "I cannot reach the requested member: {host}")
    };
    let before = node.sync_from(host);
    reply.fields(&doc! { "syncFromRequested": host });
    if (peer.applied.ts >> 32) + SOURCE_LAG_SECS < node.log.last_optime().ts >> 32 {
        let warning = format!("requested member \"{host}\" is more than {SOURCE_LAG_SECS} seconds behind us");
        reply.fields(&doc! { "warning": warning });
    }
    if !before.is_empty() {
        reply.fields(&doc! { "prevSyncTarget": before });
    }
    Ok(())
}

/// The least and the largest size of the oplog, in MB.
const OPLOG_MB: std::ops::RangeInclusive<f64> = 990.0..=1_073_741_824.0;

fn resize_oplog(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["size", "minRetentionHours"])?;
    if !node(context)?.is_replica_set() {
        bail!(ILLEGAL_OPERATION, "replSetResizeOplog can only be run on replica sets");
    }
    let number = |name: &str| match request.get(name) {
        Some(v) => v.as_f64().map(Some).ok_or_else(|| request.wrong_type(name, v, "double")),
        None => Ok(None),
    };
    let hours = number("minRetentionHours")?;
    if let Some(hours) = hours.filter(|hours| hours.is_nan() || *hours < 0.0) {
        bail!(BAD_VALUE, "BSON field 'minRetentionHours' value must be >= 0, actual value '{hours}'");
    }
    let mb = number("size")?;
    match mb {
        Some(mb) if mb.is_nan() || mb < *OPLOG_MB.start() => {
            bail!(BAD_VALUE, "BSON field 'size' value must be >= 990, actual value '{mb}'")
        }
        Some(mb) if mb > *OPLOG_MB.end() => {
            bail!(BAD_VALUE, "BSON field 'size' value must be <= 1073741824, actual value '{mb}'")
        }
        _ => {
            let bytes = mb.map(|mb| (mb * 1024.0 * 1024.0) as u64);
            node(context)?.resize_oplog(bytes, hours.map(hours_to_ms))
        }
    }
}

fn rollback_id(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    member(context)?;
    reply.fields(&doc! { "rbid": node(context)?.replication.rollback_id() });
    Ok(())
}

fn is_self(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    reply.fields(&doc! { "id": context.service.topology.version().process_id });
    Ok(())
}

fn abort_catch_up(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    member(context)?;
    node(context)?.abort_catch_up()
}

async fn test_set(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    if request.get("getLastStableRecoveryTimestamp").is_some() {
        let stable = node(context)?.stable_recovery_time();
        stable.into_iter().for_each(|ts| reply.fields(&doc! { "lastStableRecoveryTimestamp": ts }));
    }
    if request.get("restartHeartbeats").is_some() {
        node(context)?.replication.ask_members_now();
    }
    wait_for_state(context, request).await
}

async fn wait_for_state(context: &Context, request: &Request<'_>) -> Result<()> {
    let Some(wanted) = request.integer("waitForMemberState")? else { return Ok(()) };
    let limit = request.integer("timeoutMillis")?.unwrap_or(0).clamp(0, 600_000) as u64;
    let service = &context.service;
    let node = node(context)?.clone();
    let reached = async {
        let mut changes = service.topology.subscribe();
        while node.replication.standing().state as i64 != wanted {
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    match context.operation.interruptible(tokio::time::timeout(Duration::from_millis(limit), reached)).await?
    {
        Ok(()) => Ok(()),
        Err(_) => bail!(EXCEEDED_TIME_LIMIT, "operation exceeded time limit"),
    }
}

async fn apply_ops(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let done = node::write::apply_ops::apply_ops(node(context)?, &context.operation, request.node).await;
    conclude(context, reply, done).await
}

async fn append_note(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["data", "maxClusterTime"])?;
    let node = node(context)?;
    if !node.is_replica_set() {
        bail!(NO_REPLICATION_ENABLED, "Must have replication set up to run \"appendOplogNote\"");
    }
    let data = request.document("data")?.ok_or_else(|| request.missing("data"))?.to_document();
    if let Some(limit) = request.get("maxClusterTime").and_then(|v| v.as_timestamp())
        && node.log.last_optime().ts >= limit.as_u64()
    {
        bail!(
            STALE_CLUSTER_TIME,
            "Requested maxClusterTime {limit:?} is less or equal to the last primary OpTime"
        );
    }
    node.append_note(&context.operation, data)?;
    acknowledge(context, reply).await
}

/// The defaults belong to a plain set or to the config server.
fn check_defaults_role(context: &Context, request: &Request<'_>) -> Result<()> {
    let name = request.command.name;
    if context.service.role == Roles::STANDALONE {
        bail!(51300, "'{name}' is not supported on standalone nodes.");
    }
    if context.service.role == Roles::SHARD {
        bail!(51301, "'{name}' is not supported on shard nodes.");
    }
    Ok(())
}

fn stored_defaults(node: &Arc<node::Node>) -> Result<Document> {
    let client = LocalClient::new(node.clone());
    Ok(client
        .find_one(default_concerns::COLLECTION, &doc! { "_id": default_concerns::ID })?
        .unwrap_or_default())
}

pub(super) const GET_DEFAULTS: Shape =
    Shape { name: "getDefaultRWConcern", generic: true, fields: &[field("inMemory", Kind::Bool)] };

fn get_defaults(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    check_defaults_role(context, request)?;
    reply.fields(&shown_defaults(node(context)?, &stored_defaults(node(context)?)?));
    if request.get("inMemory") == Some(ValueRef::Boolean(true)) {
        reply.fields(&doc! { "inMemory": true });
    }
    Ok(())
}

/// `serverStatus.defaultRWConcern`: what this node knows of the defaults.
pub(super) fn known_defaults(context: &Context) -> Document {
    if let Ok(router) = context.service.members.router() {
        return router.defaults.shown();
    }
    let Some(node) = &context.service.node else { return Document::new() };
    stored_defaults(node).map(|stored| shown_defaults(node, &stored)).unwrap_or_default()
}

fn shown_defaults(node: &node::Node, stored: &Document) -> Document {
    let mut d = Document::new();
    let (read, write) = (stored.get("defaultReadConcern"), stored.get("defaultWriteConcern"));
    d.push("defaultReadConcern", read.cloned().unwrap_or(Value::Document(doc! { "level": "local" })));
    let w = if node.implicit_concern_is_majority() { Value::from("majority") } else { Value::Int32(1) };
    let implicit = Value::Document(doc! { "w": w, "wtimeout": 0 });
    d.push("defaultWriteConcern", write.cloned().unwrap_or(implicit));
    for name in ["updateOpTime", "updateWallClockTime"] {
        if let Some(v) = stored.get(name) {
            d.push(name, v.clone());
        }
    }
    let source = |v: Option<&Value>| if v.is_some() { "global" } else { "implicit" };
    d.push("defaultWriteConcernSource", source(write));
    d.push("defaultReadConcernSource", source(read));
    d.push("localUpdateWallClockTime", Value::DateTime(crate::log::now_millis()));
    d
}

/// The write concern that is to be everybody's default.
fn default_write_concern(given: Doc<'_>) -> Result<WriteConcern> {
    let mut concern = WriteConcern::parse(given)?;
    // A null names a mode, the empty one.
    if let Some(ValueRef::Null) = given.get("w") {
        concern.w = WriteAck::Mode(String::new());
    }
    if concern.w == WriteAck::Nodes(0) {
        bail!(BAD_VALUE, "Unacknowledged write concern is not suitable for the default write concern");
    }
    if given.get("w").is_none() && given.get("j").is_none() && given.get("wtimeout").is_some() {
        bail!(BAD_VALUE, "A default write concern with a 'wtimeout' needs a 'w' too");
    }
    Ok(concern)
}

/// A default read concern has a level and nothing else.
fn check_read_default(given: Doc<'_>) -> Result<()> {
    const SHAPE: Shape =
        Shape { name: "defaultReadConcern", generic: false, fields: &[field("level", Kind::String)] };
    SHAPE.check(given)
}

async fn set_defaults(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&["defaultReadConcern", "defaultWriteConcern"])?;
    check_defaults_role(context, request)?;
    let (read, write) = (request.document("defaultReadConcern")?, request.document("defaultWriteConcern")?);
    if read.is_none() && write.is_none() {
        bail!(
            BAD_VALUE,
            "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present"
        );
    }
    let node = node(context)?;
    if context.operation.write_concern.given {
        node.check_satisfiable(&context.operation.write_concern)?;
    }
    let mut stored = stored_defaults(node)?;
    stored.insert("_id", default_concerns::ID);
    if let Some(given) = write {
        let concern = default_write_concern(given)?;
        if given.get("w").is_none() && stored.contains_key("defaultWriteConcern") {
            bail!(ILLEGAL_OPERATION, "The global default write concern cannot be unset once it is set.");
        }
        node.check_satisfiable(&concern)?;
        let mut shown = doc! { "w": given.get("w").map(|v| v.to_value()).unwrap_or(Value::Int32(1)) };
        if concern.journal {
            shown.push("j", true);
        }
        shown.push("wtimeout", concern.timeout.map_or(0, |t| t.as_millis() as i32));
        stored.insert("defaultWriteConcern", shown);
    }
    if let Some(given) = read {
        check_read_default(given)?;
        match given.get_str("level") {
            Some("local" | "available" | "majority") => {
                stored.insert("defaultReadConcern", given.to_document());
            }
            None if given.is_empty() => {
                stored.remove("defaultReadConcern");
            }
            level => bail!(
                BAD_VALUE,
                "level: '{}' is not suitable for the default read concern",
                level.unwrap_or("")
            ),
        }
    }
    stored.insert("updateOpTime", Timestamp::from_u64(node.log.reserve_ts()));
    stored.insert("updateWallClockTime", Value::DateTime(crate::log::now_millis()));
    // Whoever follows that collection puts them in force.
    LocalClient::new(node.clone()).put(default_concerns::COLLECTION, &stored).await?;
    reply.fields(&shown_defaults(node, &stored));
    // They are durable; neither the old default nor the new one is asked of this write.
    match context.operation.write_concern.given {
        true => acknowledge(context, reply).await,
        false => Ok(()),
    }
}
