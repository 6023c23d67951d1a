//! Connections of this node to others: `connPoolStats`, `connPoolSync`, `dropConnections`.

use crate::dispatch::{Command, Context, Needs, Reply, Request, Roles};
use document::{Document, Result, ValueRef, doc};
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
        // A set of one is asked nothing beside the requests it gets.
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
    let given = request.get("hostAndPort").ok_or_else(|| request.missing("hostAndPort"))?;
    let ValueRef::Array(hosts) = given else {
        return Err(request.wrong_type("hostAndPort", given, "array"));
    };
    for e in hosts.iter() {
        let host = e.value();
        let name = host.as_str().ok_or_else(|| request.wrong_type("hostAndPort.0", host, "string"))?;
        if let Some(pool) = context.service.members.pool() {
            pool.forget(name);
        }
    }
    Ok(())
}
