//! `serverStatus`: a table of sections. A counter here moves when what it counts happens; [`CONSTANTS`] names those
//! that do not.

use crate::auth::needs;
use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::log::now_millis;
use crate::options::{Program, VERSION};
use crate::topology::Membership;
use document::{Document, Result, Value, doc};
use node::auth::Action as A;

pub const ROWS: &[Command] = &[
    Command::sync("serverStatus", Roles::ALL, run)
        .takes_no_write_concern()
        .needs(Needs::Cluster(&[A::ServerStatus]))
        .help("Counters and state of this node."),
    Command::sync("getDiagnosticData", Roles::ALL, diagnostic_data)
        .needs(Needs::Asked(needs::takes_diagnostics))
        .admin_only()
        .help("A sample of diagnostics."),
];

/// Fields that are always the same, because what they describe does not exist here.
pub const CONSTANTS: &[&str] = &[
    "asserts.warning",
    "asserts.msg",
    "asserts.tripwire",
    "asserts.rollovers",
    "connections.threaded",
    "connections.limitExempt",
    "extra_info.input_blocks",
    "extra_info.output_blocks",
    "globalLock.currentQueue",
    "locks",
    "metrics.operation",
    "metrics.repl.buffer.apply.count",
    "metrics.repl.buffer.apply.sizeBytes",
    "mirroredReads",
    "metrics.ttl",
    "network.numSlowDNSOperations",
    "network.numSlowSSLOperations",
    "opcountersRepl",
    "opLatencies.transactions",
    "sharding.maxChunkSizeInBytes",
    "transportSecurity",
    "wiredTiger.cache.tracked dirty bytes in the cache",
];

/// What a request says of a section: whether it is to be shown, and in detail, which a number above 0 asks for.
#[derive(Clone, Copy)]
pub struct Asked {
    shown: bool,
    in_detail: bool,
}

/// One section: its name, where it exists, whether it is shown unasked, whether a parameter lets it be shown, what it says, and what it
/// adds in detail.
pub struct Section {
    pub name: &'static str,
    roles: Roles,
    default: bool,
    reported: fn(&Context) -> bool,
    build: fn(&Context) -> Value,
    detail: fn(&Context) -> Document,
}

/// One that every role has and shows unasked.
const fn section(name: &'static str, build: fn(&Context) -> Value) -> Section {
    Section { name, roles: Roles::ALL, default: true, reported: |_| true, build, detail: |_| Document::new() }
}

impl Section {
    const fn on(self, roles: Roles) -> Section {
        Section { roles, ..self }
    }
    const fn when_asked(self) -> Section {
        Section { default: false, ..self }
    }
    const fn in_detail(self, detail: fn(&Context) -> Document) -> Section {
        Section { detail, ..self }
    }
    const fn reported_if(self, reported: fn(&Context) -> bool) -> Section {
        Section { reported, ..self }
    }
}

fn security(context: &Context) -> Value {
    let mut d = doc! { "authentication": context.service.auth.status() };
    if let Some(tls) = &context.service.tls {
        tls.status().into_iter().for_each(|(name, value)| d.push(name, value));
    }
    Value::Document(d)
}

/// The table. Other rooms' sections are rows here too.
pub const SECTIONS: &[Section] = &[
    section("asserts", asserts),
    section("catalogStats", catalog).on(Roles::MONGOD),
    section("connections", connections),
    section("defaultRWConcern", |context| super::replica_set::known_defaults(context).into())
        .on(Roles::SETS.or(Roles::ROUTER)),
    section("electionMetrics", elections).on(Roles::SETS),
    section("extra_info", extra_info),
    section("flowControl", flow_control).on(Roles::MONGOD),
    section("globalLock", global_lock),
    section("indexBuilds", index_builds).on(Roles::MONGOD),
    section("locks", |_| Document::new().into()).on(Roles::MONGOD),
    section("logicalSessionRecordCache", sessions),
    section("transactions", transactions),
    section("mem", memory),
    section("metrics", metrics),
    section("mirroredReads", |_| doc! { "seen": 0i64, "sent": 0i64 }.into()).on(Roles::MONGOD).when_asked(),
    section("network", network),
    section("opLatencies", |c| c.service.counters.latencies().into()),
    section("oplog", oplog).on(Roles::SETS).when_asked(),
    section("oplogTruncation", oplog_truncation).on(Roles::SETS),
    section("opcounters", |c| c.service.counters.operations.to_document().into()),
    section("opcountersRepl", opcounters_repl).on(Roles::MONGOD),
    section("opWriteConcernCounters", |c| c.service.counters.write_concerns.shown().into())
        .on(Roles::SETS)
        .reported_if(|c| c.service.counters.write_concerns.are_reported()),
    section("queryAnalyzers", crate::sampling::status).on(Roles::SETS.or(Roles::ROUTER)),
    section("readConcernCounters", |c| c.service.counters.read_concerns.shown().into()).on(Roles::MONGOD),
    section("repl", repl).on(Roles::SETS).in_detail(replication_progress),
    section("security", security),
    section("storageEngine", storage_engine).on(Roles::MONGOD),
    section("sharding", sharding_section).on(Roles::SHARD.or(Roles::ROUTER)),
    section("shardingStatistics", sharding_statistics).on(Roles::SHARD.or(Roles::ROUTER)),
    section("twoPhaseCommitCoordinator", coordinators).on(Roles::SHARD),
    section("tcmalloc", allocator),
    section("transportSecurity", |context| match &context.service.tls {
        Some(tls) => tls.versions.shown().into(),
        None => crate::tls::Versions::default().shown().into(),
    }),
    section("wiredTiger", wired_tiger).on(Roles::MONGOD),
];

/// All that are asked for: the default sections but those given as false or 0, and others given as true or 1.
fn run(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let asked = |name: &str| {
        let value = request.body.get(name)?;
        let in_detail = value.is_number() && value.as_i64().is_some_and(|level| level > 0);
        Some(Asked { shown: value.truthy(), in_detail })
    };
    reply.fields(&status(context, asked));
    Ok(())
}

/// The whole document. `asked` says what the request says of a section by name.
pub fn status(context: &Context, asked: impl Fn(&str) -> Option<Asked>) -> Document {
    let mut d = head(context);
    let none = asked("none").is_some_and(|a| a.shown);
    let all = asked("all").is_some_and(|a| a.shown);
    for section in SECTIONS {
        let unasked = Asked { shown: (section.default && !none) || all, in_detail: false };
        let Asked { shown, in_detail } = asked(section.name).unwrap_or(unasked);
        if shown && section.roles.contains(context.service.role) && (section.reported)(context) {
            let mut value = (section.build)(context);
            if let Value::Document(fields) = &mut value
                && in_detail
            {
                fields.0.extend((section.detail)(context).0);
            }
            d.push(section.name, value);
        }
    }
    d
}

fn head(context: &Context) -> Document {
    let service = &context.service;
    let uptime = service.uptime();
    doc! {
        "host": service.host.as_str(),
        "version": VERSION,
        "process": service.program.name(),
        "service": Value::Array(vec![Value::from(if service.program == Program::Mongos { "router" } else { "shard" })]),
        "pid": i64::from(std::process::id()),
        // Whole seconds in a double: clients in typed languages read an integer.
        "uptime": uptime.as_secs() as f64,
        "uptimeMillis": uptime.as_millis() as i64,
        "uptimeEstimate": uptime.as_secs() as i64,
        "localTime": Value::DateTime(now_millis()),
    }
}

/// Empty until a cluster has taken this node in.
fn sharding_section(context: &Context) -> Value {
    if let Ok(router) = context.service.members.router() {
        let config = router.cluster.config_string();
        return doc! { "configsvrConnectionString": config, "maxChunkSizeInBytes": 128i64 << 20 }.into();
    }
    let Ok(role) = context.service.members.shard() else { return Document::new().into() };
    let Some(identity) = role.identity() else { return Document::new().into() };
    doc! {
        "configsvrConnectionString": identity.config.as_str(),
        "maxChunkSizeInBytes": 128i64 << 20,
        "migrations": role.migrations.status(),
        "rangeDeleterTasks": sharding::shard::range_deleter::tasks(role, None).len() as i64,
    }
    .into()
}

fn sharding_statistics(context: &Context) -> Value {
    if let Ok(router) = context.service.members.router() {
        return doc! {
            "numHostsTargeted": router.targeted.shown(), "catalogCache": router.cluster.statistics(),
        }
        .into();
    }
    match context.service.members.shard() {
        Ok(role) if role.identity().is_some() => sharding::shard::commands::sharding_statistics(role).into(),
        _ => Document::new().into(),
    }
}

fn asserts(context: &Context) -> Value {
    let a = &context.service.counters.asserts;
    doc! {
        "regular": a.regular.get() as i32, "warning": a.warning.get() as i32, "msg": a.message.get() as i32,
        "user": a.user.get() as i32, "tripwire": 0, "rollovers": 0,
    }
    .into()
}

fn connections(context: &Context) -> Value {
    let service = &context.service;
    let c = &service.connections;
    let (current, queued) = (c.current.get(), service.establishment.queued.get());
    doc! {
        "current": current as i32,
        "available": (service.options.max_connections as i64 - current - queued) as i32,
        "queued": queued as i32,
        "totalCreated": c.total.get() as i32,
        "rejected": c.rejected.get() as i32,
        "active": service.operations.active() as i32,
        "threaded": current as i32,
        "exhaustIsMaster": 0i64,
        "exhaustHello": c.exhaust_hellos.get(),
        "awaitingTopologyChanges": c.awaiting.get(),
        "loadBalanced": c.balanced.get(),
        "establishmentRateLimit": { "rejected": service.establishment.rejected.get() },
    }
    .into()
}

fn extra_info(_: &Context) -> Value {
    // SAFETY: an all-zero rusage is a valid value of that plain struct, which the call then fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let micros = |t: libc::timeval| t.tv_sec * 1_000_000 + t.tv_usec;
    doc! {
        "note": "fields vary by platform",
        "user_time_us": micros(usage.ru_utime),
        "system_time_us": micros(usage.ru_stime),
        "maximum_resident_set_kb": usage.ru_maxrss,
        "input_blocks": usage.ru_inblock,
        "output_blocks": usage.ru_oublock,
        "page_reclaims": usage.ru_minflt,
        "page_faults": usage.ru_majflt,
        "voluntary_context_switches": usage.ru_nvcsw,
        "involuntary_context_switches": usage.ru_nivcsw,
    }
    .into()
}

fn flow_control(context: &Context) -> Value {
    let enabled = context.service.parameters.bool("enableFlowControl");
    context.service.flow_control.status(enabled).into()
}

fn global_lock(context: &Context) -> Value {
    let active = context.service.operations.active() as i32;
    doc! {
        "totalTime": context.service.uptime().as_micros() as i64,
        "currentQueue": { "total": 0, "readers": 0, "writers": 0 },
        "activeClients": { "total": active, "readers": active, "writers": 0 },
    }
    .into()
}

fn transactions(context: &Context) -> Value {
    if let Some(node) = &context.service.node {
        return node.transaction_status().into();
    }
    context.service.members.router().map_or(Value::Null, |router| router.transactions.status().into())
}
fn coordinators(context: &Context) -> Value {
    context.service.members.shard().map_or(Value::Null, |role| role.coordinators.statistics().into())
}
fn sessions(context: &Context) -> Value {
    let service = &context.service;
    let catalog = match (&service.node, service.members.router()) {
        (Some(node), _) => node.sessions.len(),
        (None, Ok(router)) => router.transactions.sessions(),
        (None, Err(_)) => 0,
    };
    service.sessions.status(catalog).into()
}

/// Resident and virtual memory in MiB.
fn memory(_: &Context) -> Value {
    let pages = crate::memory::pages();
    doc! {
        "bits": 64, "resident": (pages.resident >> 20) as i32, "virtual": (pages.total >> 20) as i32,
        "supported": true,
    }
    .into()
}

/// Of the real server's section what this allocator, which is another, has too: under the names that exporters and dashboards read.
fn allocator(_: &Context) -> Value {
    let (held, used) = (crate::memory::resident_bytes(), document::meter::allocated());
    let generic = doc! {
        "current_allocated_bytes": used as i64, "heap_size": held as i64,
        "physical_memory_used": held as i64, "bytes_in_use_by_app": used as i64,
    };
    doc! { "usingPerCPUCaches": false, "generic": generic }.into()
}

fn metrics(context: &Context) -> Value {
    let service = &context.service;
    let c = &service.counters;
    let node = service.node.as_deref();
    let cursors = match (node, service.members.router()) {
        (Some(node), _) => node.cursors.metrics(),
        (None, Ok(router)) => router.cursors.metrics(),
        (None, Err(_)) => Default::default(),
    };
    let mut commands = c.commands_document(service.commands(), |row| service.answers(row));
    if let Some(node) = node {
        commands.push("replSetStepDownWithForce", node.forced_step_downs());
    }
    let read = |f: fn(&node::Node) -> &node::stripe::Counter| node.map_or(0, |n| f(n).get());
    doc! {
        "aggStageCounters": c.stages.shown(),
        "apiVersions": c.api_versions.shown(),
        "commands": commands,
        "document": {
            "deleted": c.documents.deleted.get(), "inserted": c.documents.inserted.get(),
            "returned": c.documents.returned.get(), "updated": c.documents.updated.get(),
        },
        "queryExecutor": {
            "scanned": read(|n| &n.index_use.totals.keys),
            "scannedObjects": read(|n| &n.index_use.totals.docs),
            "collectionScans": node.map_or_else(Document::new, |n| n.index_use.totals.scans.shown()),
        },
        "cursor": {
            "lifespan": cursors.lifespans(),
            "timedOut": cursors.timed_out as i64, "totalOpened": cursors.total_opened as i64,
            "moreThanOneBatch": cursors.more_than_one_batch as i64,
            "open": {
                "noTimeout": cursors.no_timeout as i64, "pinned": cursors.pinned as i64,
                "total": cursors.open as i64,
            },
        },
        "getLastError": node.map_or_else(Document::new, node::Node::write_concern_metrics),
        "query": query_metrics(context),
        "repl": replication_metrics(context),
        "ttl": { "deletedDocuments": read(|n| &n.ttl.deleted), "passes": read(|n| &n.ttl.passes) },
        "operation": {
            "scanAndOrder": read(|n| &n.index_use.totals.sorts), "writeConflicts": read(|n| &n.write_conflicts),
            "killedDueToClientDisconnect": c.killed.disconnected.get(),
            "killedDueToMaxTimeMSExpired": c.killed.expired.get(),
        },
        "operatorCounters": c.operators.shown(),
    }
    .into()
}

fn replication_metrics(context: &Context) -> Document {
    let service = &context.service;
    let Some(node) = service.node.as_ref().filter(|n| n.is_replica_set()) else { return Document::new() };
    let mut d = node.replication_metrics();
    d.push("stateTransition", service.operations.last_transition());
    d
}

fn query_metrics(context: &Context) -> Document {
    match (&context.service.node, context.service.members.router()) {
        (Some(node), _) => {
            let mut d = doc! { "planCache": node.plan_caches.shown() };
            d.0.extend(spills(node).0);
            d
        }
        (None, Ok(router)) => {
            doc! { "updateOneOpStyleBroadcastWithExactIDCount": router.targeted.broadcast_by_id.get() }
        }
        (None, Err(_)) => Document::new(),
    }
}

/// What stages wrote to files, by kind.
fn spills(node: &node::Node) -> Document {
    use query::pipeline::account::Kind;
    let mut out = Document::new();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Sort) {
        out.push(kind.name(), node.spills.of(kind).fields());
    }
    let sorts = node.spills.of(Kind::Sort);
    out.push(
        "sort",
        doc! {
            "spillToDisk": sorts.spills as i64, "spillToDiskBytes": sorts.spilled_bytes as i64,
        },
    );
    out
}

/// How many collections and views there are of each kind: users' own, and those of the server and its databases.
fn catalog(context: &Context) -> Value {
    let names =
        ["collections", "capped", "clustered", "timeseries", "views", "internalCollections", "internalViews"];
    let mut counts = [0i32; 7];
    for slot in context.service.node.iter().flat_map(|node| node.namespaces.visible()) {
        let (db, name) = storage::split_namespace(&slot.ns);
        let internal = document::is_internal_database(db) || name.starts_with("system.");
        let state = slot.read_unchecked();
        match (&state.collection, &state.view) {
            (_, Some(_)) if internal => counts[6] += 1,
            (_, Some(view)) if node::timeseries::is_series(view) => counts[3] += 1,
            (_, Some(_)) => counts[4] += 1,
            (Some(_), None) if internal => counts[5] += 1,
            (Some(collection), None) => {
                counts[0] += 1;
                counts[1] += i32::from(state.capped.is_some());
                counts[2] += i32::from(collection.is_clustered());
            }
            (None, None) => {}
        }
    }
    names.into_iter().map(str::to_string).zip(counts.map(Value::Int32)).collect::<Document>().into()
}

fn index_builds(context: &Context) -> Value {
    let total = context.service.node.as_ref().map_or(0, |node| node.index_builds.total());
    doc! { "total": total as i64 }.into()
}

fn network(context: &Context) -> Value {
    let n = &context.service.counters.network;
    doc! {
        "bytesIn": n.bytes_in.get(), "bytesOut": n.bytes_out.get(),
        "physicalBytesIn": n.bytes_in.get(), "physicalBytesOut": n.bytes_out.get(),
        "numSlowDNSOperations": n.slow_dns.get(), "numSlowSSLOperations": n.slow_ssl.get(),
        "numRequests": n.requests.get(),
    }
    .into()
}

fn opcounters_repl(context: &Context) -> Value {
    let applied = context.service.node.as_ref().map(|node| node.replicated_operations());
    applied.unwrap_or_else(|| crate::counters::Operations::default().to_document()).into()
}

fn repl(context: &Context) -> Value {
    let service = &context.service;
    let state = service.topology.state();
    let mut d = doc! { "topologyVersion": state.version.to_document() };
    d.0.extend(state.membership.hello_fields(false, None));
    if let Membership::Member(_) = &*state.membership
        && let Some(last) = service.times().and_then(|t| t.last_write())
    {
        d.push("lastWrite", last.to_document());
    }
    d.push("rbid", service.node.as_ref().map_or(0, |node| node.replication.rollback_id()));
    if let Some(node) = &service.node {
        let block = node.user_writes.block();
        // Disabled, or enabled for one of the reasons.
        d.push("userWriteBlockMode", if block.writes { 2 + i32::from(block.reason) } else { 1 });
    }
    d.into()
}

fn replication_progress(context: &Context) -> Document {
    match context.service.node.as_ref().map(|node| node.replication_progress()) {
        Some(progress) if !progress.is_empty() => doc! { "replicationProgress": progress },
        _ => Document::new(),
    }
}

fn oplog(context: &Context) -> Value {
    let Some(node) = &context.service.node else { return Document::new().into() };
    let (latest, earliest) = node.oplog_window();
    doc! { "latestOptime": latest, "earliestOptime": earliest }.into()
}

fn storage_engine(_: &Context) -> Value {
    doc! {
        "name": "wiredTiger", "supportsCommittedReads": true, "oldestRequiredTimestampForCrashRecovery": document::Timestamp::default(),
        "supportsPendingDrops": true, "dropPendingIdents": 0i64, "supportsSnapshotReadConcern": true,
        "readOnly": false, "persistent": true, "backupCursorOpen": false,
    }
    .into()
}

fn elections(context: &Context) -> Value {
    context.service.node.as_ref().map(|node| node.replication.election_metrics()).unwrap_or_default().into()
}

fn oplog_truncation(context: &Context) -> Value {
    context.service.node.as_ref().map(|node| node.oplog_truncation()).unwrap_or_default().into()
}

/// The cache fields that mongostat reads, where all memory of the process counts as cache and none of it is dirty; and how often the
/// log was synced.
fn wired_tiger(context: &Context) -> Value {
    let resident = match memory(context) {
        Value::Document(d) => d.get_i64("resident").unwrap_or(0) * 1024 * 1024,
        _ => 0,
    };
    let configured = context.service.options.cache_bytes.map_or_else(
        || super::info::memory_mb() * 1024 * 1024 / 2,
        |bytes| i64::try_from(bytes).unwrap_or(i64::MAX),
    );
    doc! {
        "uri": "statistics:",
        "cache": {
            "bytes currently in the cache": resident,
            "maximum bytes configured": configured,
            "tracked dirty bytes in the cache": 0i64,
        },
        "log": { "log sync operations": context.service.node.as_ref().map_or(0, |node| node.log.syncs() as i64) },
    }
    .into()
}

fn diagnostic_data(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let start = Value::DateTime(now_millis());
    let status = status(context, |_| None);
    let end = Value::DateTime(now_millis());
    reply.fields(&doc! { "data": {
        "start": start.clone(),
        "serverStatus": status,
        "end": end,
    } });
    Ok(())
}
