//! What the status shows, as one document:
//!
//! ```text
//! {kind: "sharded" | "set" | "standalone", members: [{name, state}],
//!  routers: [{_id, up}], shards: [{_id, host, draining, zones, chunks, jumbo, bytes, orphans}],
//!  collections: [{ns, key, chunks, jumbo, bytes, shards: [{_id, chunks, bytes}], ...}],
//!  balancer: {mode, inBalancerRound, numBalancerRounds, activeWindow?}, migrations: [...], rounds: [...], load: {...}}
//! ```

use document::{Document, Result, Value, array, doc};
use std::collections::BTreeMap;
use wire::client::Connection;

/// Rounds of the balancer that are shown.
const ROUNDS: i32 = 5;

/// Asks for all of it.
///
/// # Errors
/// Those of the first command that fails.
pub(super) async fn gather(connection: &mut Connection) -> Result<Document> {
    let hello = run(connection, "admin", doc! { "hello": 1 }).await?;
    let mut view = doc! { "kind": "standalone" };
    if hello.get_str("msg") == Some("isdbgrid") {
        view = sharded(connection).await?;
    } else if hello.contains_key("setName") {
        view = set(connection).await?;
    }
    view.push("load", load(connection).await?);
    Ok(view)
}

async fn run(connection: &mut Connection, db: &str, command: Document) -> Result<Document> {
    Ok(connection.run(db, command.to_doc_buf()).await?.to_document())
}

/// Every document of a cursor.
async fn all(connection: &mut Connection, db: &str, command: Document) -> Result<Vec<Document>> {
    let name = command.first().and_then(|(_, v)| v.as_str()).unwrap_or("$cmd.aggregate").to_string();
    let mut reply = run(connection, db, command).await?;
    let mut documents = Vec::new();
    loop {
        let cursor = reply.get_document("cursor").cloned().unwrap_or_default();
        let batch = cursor.get_array("firstBatch").or_else(|| cursor.get_array("nextBatch"));
        documents.extend(batch.into_iter().flatten().filter_map(|v| v.as_document().cloned()));
        let id = cursor.get_i64("id").unwrap_or(0);
        if id == 0 {
            return Ok(documents);
        }
        reply =
            run(connection, db, doc! { "getMore": Value::Int64(id), "collection": name.as_str() }).await?;
    }
}

async fn find(connection: &mut Connection, collection: &str) -> Result<Vec<Document>> {
    all(connection, "config", doc! { "find": collection, "sort": { "_id": 1 } }).await
}

async fn set(connection: &mut Connection) -> Result<Document> {
    let status = run(connection, "admin", doc! { "replSetGetStatus": 1 }).await?;
    let members = status.get_array("members").into_iter().flatten().filter_map(Value::as_document);
    let line = |m: &Document| doc! { "name": m.get("name").cloned(), "state": m.get("stateStr").cloned() };
    let members: Vec<Document> = members.map(line).collect();
    Ok(doc! { "kind": "set", "set": status.get("set").cloned(), "members": members })
}

async fn load(connection: &mut Connection) -> Result<Document> {
    let status = run(connection, "admin", doc! { "serverStatus": 1 }).await?;
    let connections = status.get_path("connections.current").cloned();
    let counters = status.get_document("opcounters").cloned().unwrap_or_default();
    let operations: i64 = counters.iter().filter_map(|(_, v)| v.as_i64()).sum();
    Ok(doc! { "connections": connections, "operations": operations })
}

/// What one shard has of one collection.
#[derive(Clone, Copy, Default)]
struct Share {
    chunks: i64,
    jumbo: i64,
    bytes: i64,
    orphans: i64,
}

/// By namespace of a collection, then by shard.
type Shares = BTreeMap<String, BTreeMap<String, Share>>;

async fn sharded(connection: &mut Connection) -> Result<Document> {
    let collections = find(connection, "collections").await?;
    let shares = shares(connection, &collections).await?;
    let shards = find(connection, "shards").await?;
    let routers: Vec<Document> = find(connection, "mongos")
        .await?
        .iter()
        .map(|m| doc! { "_id": m.get("_id").cloned(), "up": m.get("up").cloned() })
        .collect();
    let shard = |s: &Document| {
        let name = s.get_str("_id").unwrap_or_default();
        let own = shares.values().filter_map(|by_shard| by_shard.get(name).copied());
        let sum = own.fold(Share::default(), Share::plus);
        doc! {
            "_id": name, "host": s.get("host").cloned(), "draining": s.get_bool("draining").unwrap_or(false),
            "zones": s.get_array("tags").cloned().unwrap_or_default(), "chunks": sum.chunks, "jumbo": sum.jumbo,
            "bytes": sum.bytes, "orphans": sum.orphans,
        }
    };
    let shards: Vec<Document> = shards.iter().map(shard).collect();
    let collections: Vec<Document> =
        collections.iter().filter(|c| !flag(c, "unsplittable")).map(|c| collection(c, &shares)).collect();
    Ok(doc! {
        "kind": "sharded", "routers": routers, "shards": shards, "collections": collections,
        "balancer": balancer(connection).await?, "migrations": migrations(connection).await?,
        "rounds": rounds(connection).await?,
    })
}

impl Share {
    fn plus(self, other: Share) -> Share {
        Share {
            chunks: self.chunks + other.chunks,
            jumbo: self.jumbo + other.jumbo,
            bytes: self.bytes + other.bytes,
            orphans: self.orphans + other.orphans,
        }
    }
}

fn flag(d: &Document, name: &str) -> bool {
    d.get_bool(name).unwrap_or(false)
}

/// Chunks are counted in the catalog, bytes as `$shardedDataDistribution` has them.
async fn shares(connection: &mut Connection, collections: &[Document]) -> Result<Shares> {
    let mut shares = Shares::new();
    let named = |c: &Document| Some((c.get("uuid")?.as_uuid()?, c.get_str("_id")?.to_string()));
    let by_uuid: BTreeMap<[u8; 16], String> = collections.iter().filter_map(named).collect();
    let jumbo = doc! { "$sum": { "$cond": ["$jumbo", 1, 0] } };
    let group =
        doc! { "_id": { "uuid": "$uuid", "shard": "$shard" }, "chunks": { "$sum": 1 }, "jumbo": jumbo };
    let count = doc! { "aggregate": "chunks", "pipeline": [doc! { "$group": group }], "cursor": {} };
    for counted in all(connection, "config", count).await? {
        let id = counted.get_document("_id").cloned().unwrap_or_default();
        let ns = id.get("uuid").and_then(Value::as_uuid).and_then(|uuid| by_uuid.get(&uuid));
        if let (Some(ns), Some(shard)) = (ns, id.get_str("shard")) {
            let share = shares.entry(ns.clone()).or_default().entry(shard.to_string()).or_default();
            share.chunks = counted.get_i64("chunks").unwrap_or(0);
            share.jumbo = counted.get_i64("jumbo").unwrap_or(0);
        }
    }
    let distribution =
        doc! { "aggregate": 1, "pipeline": [doc! { "$shardedDataDistribution": {} }], "cursor": {} };
    for of_collection in all(connection, "admin", distribution).await? {
        let by_shard = shares.entry(of_collection.get_str("ns").unwrap_or_default().to_string()).or_default();
        for of_shard in of_collection.get_array("shards").into_iter().flatten().filter_map(Value::as_document)
        {
            let shard = of_shard.get_str("shardName").unwrap_or_default().to_string();
            let share = by_shard.entry(shard).or_default();
            share.bytes = of_shard.get_i64("ownedSizeBytes").unwrap_or(0);
            share.orphans = of_shard.get_i64("numOrphanedDocs").unwrap_or(0);
        }
    }
    Ok(shares)
}

fn collection(c: &Document, shares: &Shares) -> Document {
    let ns = c.get_str("_id").unwrap_or_default();
    let own = || shares.get(ns).into_iter().flatten();
    let sum = own().map(|(_, share)| *share).fold(Share::default(), Share::plus);
    let by_shard: Vec<Document> = own()
        .map(|(shard, share)| doc! { "_id": shard.as_str(), "chunks": share.chunks, "bytes": share.bytes })
        .collect();
    let mut d = doc! {
        "ns": ns, "key": c.get("key").cloned(), "chunks": sum.chunks, "jumbo": sum.jumbo, "bytes": sum.bytes,
        "shards": by_shard,
    };
    if flag(c, "noBalance") {
        d.push("noBalance", true);
    }
    if flag(c, "defragmentCollection") {
        d.push("defragmentation", c.get_str("defragmentationPhase").unwrap_or("waiting"));
    }
    d
}

async fn balancer(connection: &mut Connection) -> Result<Document> {
    let status = run(connection, "admin", doc! { "balancerStatus": 1 }).await?;
    let mut d = Document::new();
    for name in ["mode", "inBalancerRound", "numBalancerRounds"] {
        d.push(name, status.get(name).cloned());
    }
    let settings = find(connection, "settings").await?;
    let window =
        settings.iter().find(|s| s.get_str("_id") == Some("balancer")).and_then(|s| s.get("activeWindow"));
    if let Some(window) = window {
        d.push("activeWindow", window.clone());
    }
    Ok(d)
}

/// Migrations under way: the donors' rows, with what their recipients have copied.
async fn migrations(connection: &mut Connection) -> Result<Vec<Document>> {
    let named = doc! { "desc": { "$in": array!["MoveChunk", "migrateThread"] } };
    let stages = vec![doc! { "$currentOp": { "allUsers": true } }, doc! { "$match": named }];
    let command = doc! { "aggregate": 1, "pipeline": stages, "cursor": {} };
    let rows = all(connection, "admin", command).await?;
    let (donors, recipients): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|r| r.get_str("desc") == Some("MoveChunk"));
    let line = |donor: &Document| {
        let to = donor.get_str("to").unwrap_or_default();
        let copy = recipients.iter().find(|r| r.get_str("shard") == Some(to));
        doc! {
            "ns": donor.get("ns").cloned(), "from": donor.get("shard").cloned(), "to": to,
            "step": donor.get_str("msg").unwrap_or_default(),
            "copiedBytes": copy.and_then(|r| r.get_i64("clonedBytes")).unwrap_or(0),
        }
    };
    Ok(donors.iter().map(line).collect())
}

async fn rounds(connection: &mut Connection) -> Result<Vec<Document>> {
    let command = doc! {
        "find": "actionlog", "filter": { "what": "balancer.round" }, "sort": { "time": -1 }, "limit": ROUNDS,
        "batchSize": ROUNDS, "singleBatch": true,
    };
    let rounds = all(connection, "config", command).await?;
    Ok(rounds
        .iter()
        .map(|r| doc! { "time": r.get("time").cloned(), "details": r.get("details").cloned() })
        .collect())
}
