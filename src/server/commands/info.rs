//! What the node is made of: ping, buildInfo, hostInfo, getCmdLineOpts, features, whatsmyuri, isdbgrid and the like.

use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use crate::log::now_millis;
use crate::options;
use crate::service::Service;
use document::{Document, Result, Value, doc};
use node::auth::Action as A;
use std::sync::Arc;

pub const ROWS: &[Command] = &[
    Command::sync("ping", Roles::ALL, ping)
        .takes_no_write_concern()
        .no_auth()
        .stable_api()
        .help("Answers ok."),
    Command::sync("buildInfo", Roles::ALL, |_, request, reply| {
        request.strict(&[])?;
        reply.fields(&options::build_info());
        Ok(())
    })
    .aliases(&["buildinfo"])
    .takes_no_write_concern()
    .no_auth()
    .help("Version and build of this server."),
    Command::sync("hostInfo", Roles::ALL, host_info)
        .takes_no_write_concern()
        .needs(Needs::Cluster(&[A::HostInfo]))
        .help("The machine this node runs on."),
    Command::sync("getCmdLineOpts", Roles::ALL, command_line)
        .takes_no_write_concern()
        .needs(Needs::Cluster(&[A::GetCmdLineOpts]))
        .admin_only()
        .help("The options this node was started with."),
    Command::sync("features", Roles::ALL, |_, _, reply| {
        reply.fields(&doc! { "oidMachine": 0 });
        Ok(())
    })
    .takes_no_write_concern()
    .needs(Needs::Login)
    .no_auth()
    .help("Reports build-level features."),
    Command::sync("whatsmyuri", Roles::ALL, |context, _, reply| {
        reply.writer().string("you", &context.connection.client.remote);
        Ok(())
    })
    .takes_no_write_concern()
    .no_auth()
    .help("The address this connection comes from."),
    Command::sync("isdbgrid", Roles::ROUTER, |context, _, reply| {
        reply.fields(&doc! { "isdbgrid": 1, "hostname": context.service.host.as_str() });
        Ok(())
    })
    .no_auth()
    .help("Tells a router from other nodes."),
    Command::sync("netstat", Roles::ROUTER, |context, _, reply| {
        let config = context.service.members.router()?.cluster.config_string();
        reply.fields(&doc! { "configserver": config, "isdbgrid": 1 });
        Ok(())
    })
    .needs(Needs::Cluster(&[A::Netstat]))
    .admin_only()
    .help("Router connectivity."),
    Command::sync("lockInfo", Roles::MONGOD, |_, request, reply| {
        request.strict(&[])?;
        reply.fields(&doc! { "lockInfo": [] });
        Ok(())
    })
    .takes_no_write_concern()
    .needs(Needs::Cluster(&[A::ServerStatus]))
    .admin_only()
    .help("Long locks that are held now."),
];

/// Where starts are noted, and how many bytes of them are kept.
const STARTUP_LOG: &str = "local.startup_log";
const STARTUP_LOG_SIZE: i64 = 10 * 1024 * 1024;

/// Notes this start in `local.startup_log`. Nothing depends on it, so a node that cannot write it starts all the same.
pub async fn write_startup_log(service: &Arc<Service>) -> Result<()> {
    let Some(node) = &service.node else { return Ok(()) };
    let op = node::Operation::internal();
    let slot = node.namespaces.slot(STARTUP_LOG);
    if slot.read_unchecked().collection.is_none() {
        let options = doc! { "capped": true, "size": STARTUP_LOG_SIZE };
        drop(node::ddl::collections::create_collection(node, &op, STARTUP_LOG, options, None).await);
    }
    let host = service.host.rsplit_once(':').map_or(service.host.as_str(), |(host, _)| host);
    let (now, options) = (now_millis(), &service.options);
    let start = doc! {
        "_id": format!("{host}-{now}"), "hostname": service.host.as_str(), "startTime": Value::DateTime(now),
        "startTimeLocal": document::extended_json::iso_date(now), "cmdLine": options.parsed.clone(),
        "pid": i64::from(std::process::id()), "buildinfo": options::build_info(),
    };
    let start = start.to_doc_buf();
    let written = node.write(&op, &slot, |unit| {
        unit.insert(start.doc(), node::Origin::default())?;
        unit.trim_capped()
    });
    drop(written.await);
    Ok(())
}

fn ping(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    if context.service.failpoints().should("panicInPing") {
        panic!("the fail point panicInPing is on");
    }
    Ok(())
}

fn host_info(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let (os, kernel) = crate::process::operating_system();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as i32;
    let cpu = cpu_info();
    let page_bytes = crate::memory::page_bytes() as i64;
    reply.fields(&doc! {
        "system": {
            "currentTime": Value::DateTime(now_millis()),
            "hostname": context.service.host.as_str(),
            "cpuAddrSize": 64,
            "memSizeMB": memory_mb(),
            "memLimitMB": memory_mb(),
            "numCores": cores,
            "numCoresAvailableToProcess": cores,
            "numPhysicalCores": cores,
            "numCpuSockets": 1,
            "cpuArch": std::env::consts::ARCH,
            "numaEnabled": false,
            "numNumaNodes": 1,
        },
        "os": { "type": "Linux", "name": os, "version": kernel.as_str() },
        "extra": {
            "versionString": kernel.as_str(),
            "libcVersion": "",
            "versionSignature": "",
            "kernelVersion": kernel.trim_start_matches("Kernel "),
            "cpuString": cpu.0,
            "cpuFrequencyMHz": cpu.1,
            "cpuFeatures": "",
            "pageSize": page_bytes,
            "numPages": (memory_mb() * 1024 * 1024 / page_bytes) as i32,
            "maxOpenFiles": open_files_max(),
        },
    });
    Ok(())
}

/// Model and frequency of the first processor.
fn cpu_info() -> (String, String) {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        text.lines()
            .find(|l| l.starts_with(name))
            .and_then(|l| l.split_once(':'))
            .map(|(_, v)| v.trim().to_string())
            .unwrap_or_default()
    };
    (field("model name"), field("cpu MHz"))
}

/// The machine's memory in MiB.
pub fn memory_mb() -> i64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    total.and_then(|l| l.split_whitespace().next()?.parse::<i64>().ok()).unwrap_or(0) / 1024
}

fn open_files_max() -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills the struct it is given.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => i32::try_from(limit.rlim_cur).unwrap_or(i32::MAX),
        _ => 0,
    }
}

fn command_line(context: &Context, request: &Request<'_>, reply: &mut Reply) -> Result<()> {
    request.strict(&[])?;
    let options = &context.service.options;
    let mut parsed: Document = options.parsed.clone();
    // Passwords of certificate files are not shown.
    if let Some(Value::Document(net)) = parsed.get_mut("net")
        && let Some(Value::Document(tls)) = net.get_mut("tls")
    {
        for name in ["certificateKeyFilePassword", "clusterPassword"] {
            if tls.contains_key(name) {
                tls.insert(name, "<password>");
            }
        }
    }
    reply.fields(&doc! { "argv": options.argv.clone(), "parsed": parsed });
    Ok(())
}
