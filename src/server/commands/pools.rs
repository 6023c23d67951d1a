//! Connections of this node to others: `connPoolStats`, `connPoolSync`, `dropConnections`.

use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, ValueRef, bail, doc};
use node::auth::Action as A;

pub const ROWS: &[Command] = &[
    Command::sync("connPoolStats", Roles::ALL, statistics)
        .needs(Needs::Cluster(&[A::ConnPoolStats]))
        .help("Connections to other nodes."),
    // Pools have nothing that could be out of step.
    Command::sync("connPoolSync", Roles::ALL, |_, _, _| Ok(()))
        .needs(Needs::Cluster(&[A::ConnPoolSync]))
        .aliases(&["connpoolsync"])
        .admin_only()
        .help("Checks the connections to other nodes."),
    Command::sync("dropConnections", Roles::ALL, drop_connections)
        .needs(Needs::Cluster(&[A::DropConnections]))
        .admin_only()
        .help("Closes connections to the nodes named."),
];

/// The pool's name in the real server, which has several.
const POOL: &str = "NetworkInterfaceTL-TaskExecutorPool-0";

#[derive(Clone, Copy, Default)]
struct Count {
    in_use: i64,
    available: i64,
    created: i64,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.in_use += other.in_use;
        self.available += other.available;
        self.created += other.created;
    }
    fn fields(self) -> Document {
        doc! {
            "inUse": self.in_use, "available": self.available, "leased": 0i64, "created": self.created,
            "refreshing": 0i64, "refreshed": 0i64,
        }
    }
}

fn statistics(context: &Context, _: &Request<'_>, reply: &mut Reply) -> Result<()> {
    let (mut total, mut hosts, mut clients) = (Count::default(), Document::new(), 0);
    if let Some(pool) = context.service.members.pool() {
        for (host, in_use, available, created) in pool.statistics() {
            let count = Count { in_use: in_use as i64, available: available as i64, created: created as i64 };
            total.add(count);
            clients += in_use + available;
            hosts.push(host, count.fields());
        }
    }
    let mut named = doc! {
        "poolInUse": total.in_use, "poolAvailable": total.available, "poolLeased": 0i64, "poolCreated": total.created,
        "poolRefreshing": 0i64, "poolRefreshed": 0i64,
    };
    named.0.extend(hosts.clone());
    let mut pools = Document::new();
    pools.push(POOL, named);
    reply.fields(&doc! {
        "numClientConnections": clients as i32, "numAScopedConnections": 0, "totalInUse": total.in_use,
        "totalAvailable": total.available, "totalLeased": 0i64, "totalCreated": total.created,
        "totalRefreshing": 0i64, "totalRefreshed": 0i64, "hosts": hosts, "pools": pools,
        "replicaSets": replica_sets(context),
    });
    Ok(())
}

/// The sets that this node knows of, with their members.
fn replica_sets(context: &Context) -> Document {
    let mut sets = context.service.members.remote().map(|r| r.sets.statistics()).unwrap_or_default();
    for (_, connection) in context.service.members.known_shards() {
        let Some((set, hosts)) = connection.split_once('/') else { continue };
        // A set of one is watched only where the balancer waits for it.
        if hosts.contains(',') || sets.contains_key(set) {
            continue;
        }
        let members: Vec<Document> = hosts
            .split(',')
            .map(|host| doc! { "addr": host, "ok": true, "ismaster": true, "hidden": false, "secondary": false })
            .collect();
        sets.push(set, doc! { "hosts": members });
    }
    sets
}

/// `{dropConnections: 1, hostAndPort: [..]}`: those in use close when they are given back.
fn drop_connections(context: &Context, request: &Request<'_>, _: &mut Reply) -> Result<()> {
    request.strict(&["hostAndPort"])?;
    let given = request.get("hostAndPort").ok_or_else(|| request.missing("hostAndPort"))?;
    let ValueRef::Array(hosts) = given else {
        return Err(request.wrong_type("hostAndPort", given, "array"));
    };
    let mut names = Vec::new();
    for e in hosts.iter().filter(|e| !matches!(e.value(), ValueRef::Null | ValueRef::Undefined)) {
        let ValueRef::String(name) = e.value() else {
            return Err(request.wrong_type(&format!("hostAndPort.{}", e.name()), e.value(), "string"));
        };
        check_host(name)?;
        names.push(name);
    }
    if let Some(pool) = context.service.members.pool() {
        names.into_iter().for_each(|name| pool.forget(name));
    }
    Ok(())
}

/// `host`, `host:port` or `[address]:port`.
fn check_host(given: &str) -> Result<()> {
    let (host, port) = match given.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => match rest.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None => bail!(FAILED_TO_PARSE, "Extraneous characters after the address in '{given}'"),
        },
        None => given.split_once(':').map_or((given, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        bail!(FAILED_TO_PARSE, "Empty host component parsing HostAndPort from \"{given}\"");
    }
    match port.map(str::parse::<u16>) {
        None => Ok(()),
        Some(Ok(port)) if port > 0 => Ok(()),
        Some(_) => bail!(FAILED_TO_PARSE, "No port in 1 to 65535 parsing HostAndPort from \"{given}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::check_host;

    #[test]
    fn a_host_has_a_name_and_a_port_in_range() {
        for good in ["a", "a:1", "10.0.0.1:65535", "[::1]:27017", "[::1]"] {
            check_host(good).unwrap_or_else(|e| panic!("{good}: {}", e.message));
        }
        for bad in ["", ":1", "a:", "a:0", "a:65536", "a:-1", "a:b", "a:1:2", "::1", "[::1]x", "[]:1"] {
            assert_eq!(check_host(bad).expect_err(bad).code, 9, "{bad}");
        }
    }
}
