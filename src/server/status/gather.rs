//! What the status shows, as one document:
//!
//! ```text
//! {at, kind: "sharded" | "set" | "standalone", members: [{name, state}],
//!  routers: [{_id, up, state, connections?, operations?}], config: {set, members: [{name, state, ...}]},
//!  shards: [{_id, host, draining, maxSize?, zones, chunks, jumbo, bytes, orphans, members: [...], version?, rangeDeletions?, operations?}],
//!  zones: [{_id, shards, ranges, chunks, misplaced, bytes}],
//!  collections: [{ns, key, chunks, jumbo, bytes, shards: [{_id, chunks, bytes}], ...}],
//!  balancer: {mode, inBalancerRound, numBalancerRounds, activeWindow?}, migrations: [...], rounds: [...],
//!  moves: [{_id, ns, from, to, min, max, start, end, ok}], load: {connections, operations}, unanswered: ["why"]}
//! ```
//!
//! Operations are counted since a node began, without those of this program. What a zone has in bytes is an estimate: every chunk
//! of a collection counts as its shard's average. What a node does not tell is absent. While a shard does not answer, bytes are those
//! of the last look that had any, and `unanswered` says so.

use super::asker::{Asker, load};
use super::chunks::{self, Chunks, Zone};
use super::nodes::Nodes;
use document::{Document, Result, Value, array, doc};
use parking_lot::Mutex;
use sharding::remote::hosts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::client::{ConnectOptions, Connection};

/// Rounds of the balancer that are shown.
const ROUNDS: i32 = 5;
/// Migrations that have ended and are shown.
const MOVES: i32 = 200;

/// Asks again and again, and keeps what need not be asked anew.
pub(crate) struct Gatherer {
    asker: Asker,
    nodes: Nodes,
    map: Arc<Mutex<Map>>,
    sizes: Option<Sizes>,
}

/// Which chunk is where.
#[derive(Default)]
pub(crate) struct Map {
    pub(crate) chunks: Chunks,
    /// Of each collection, in order.
    pub(crate) zones: BTreeMap<String, Vec<Zone>>,
}

impl Gatherer {
    /// `options` are those of the connection: the nodes are asked with them too. `map` is kept up to date; it is never locked
    /// while a question is under way.
    pub(crate) fn new(connection: Connection, options: ConnectOptions, map: Arc<Mutex<Map>>) -> Gatherer {
        Gatherer { asker: Asker::new(connection), nodes: Nodes::new(options), map, sizes: None }
    }

    /// Asks for all of it.
    ///
    /// # Errors
    /// Those of the first command that fails.
    pub(crate) async fn gather(&mut self) -> Result<Document> {
        let hello = self.asker.run("admin", doc! { "hello": 1 }).await?;
        let mut view = doc! { "at": hello.get("localTime").cloned() };
        let status = self.asker.run("admin", doc! { "serverStatus": 1, "metrics": 0 }).await?;
        let load = load(&status, self.asker.sent());
        if hello.get_str("msg") == Some("isdbgrid") {
            view.push("kind", "sharded");
            self.sharded(&mut view, &status).await?;
        } else if hello.contains_key("setName") {
            set(&mut self.asker, &mut view).await?;
        } else {
            view.push("kind", "standalone");
        }
        view.push("load", load);
        Ok(view)
    }

    async fn sharded(&mut self, view: &mut Document, status: &Document) -> Result<()> {
        let asker = &mut self.asker;
        let collections = asker.config("collections").await?;
        let (routers, shards) = (asker.config("mongos").await?, asker.config("shards").await?);
        let config = status.get_path("sharding.configsvrConnectionString").and_then(Value::as_str);
        let config = config.unwrap_or_default();
        self.refresh_map(&collections).await?;
        let asker = &mut self.asker;
        let mut unanswered = Vec::new();
        let sizes = answered(sizes(asker).await, "sizes", &mut unanswered);
        self.sizes = sizes.or_else(|| self.sizes.take());
        let mut shares = counted(&self.map.lock());
        add_sizes(self.sizes.as_ref(), &mut shares);
        let addresses = addresses(&routers, &shards, config);
        let sent = asker.sent();
        let said = self.nodes.ask(&addresses).await;
        let router = |m: &Document| {
            let name = m.get_str("_id").unwrap_or_default();
            let mut d = doc! { "_id": name, "up": m.get("up").cloned() };
            append(&mut d, said.get(name));
            // This one has been asked twice: as the router, and as a node.
            if let Some(operations) = d.get_i64("operations").filter(|_| status.get_str("host") == Some(name))
            {
                d.insert("operations", operations - sent);
            }
            d
        };
        view.push("routers", routers.iter().map(router).collect::<Vec<_>>());
        view.push("config", doc! { "set": set_name(config), "members": members(config, &said) });
        view.push("shards", shards.iter().map(|s| shard(s, &shares, &said)).collect::<Vec<_>>());
        view.push("zones", zones(&self.map.lock(), &shards, &shares));
        let tracked = collections.iter().filter(|c| !flag(c, "unsplittable"));
        view.push("collections", tracked.map(|c| collection(c, &shares)).collect::<Vec<_>>());
        view.push("balancer", balancer(asker).await?);
        let migrations = answered(migrations(asker).await, "migrations", &mut unanswered);
        view.push("migrations", migrations.unwrap_or_default());
        view.push("rounds", rounds(asker).await?);
        view.push("moves", moves(asker).await?);
        if self.sizes.is_none() {
            forget_bytes(view);
        }
        if !unanswered.is_empty() {
            view.push("unanswered", unanswered);
        }
        Ok(())
    }

    async fn refresh_map(&mut self, collections: &[Document]) -> Result<()> {
        let mut zones: BTreeMap<String, Vec<Zone>> = BTreeMap::new();
        let sort = doc! { "find": "tags", "sort": { "ns": 1, "min": 1 } };
        for tag in self.asker.all("config", sort).await? {
            if let (Some(ns), Some(zone)) = (tag.get_str("ns"), Zone::read(&tag)) {
                zones.entry(ns.to_string()).or_default().push(zone);
            }
        }
        let counted = chunks::count(&mut self.asker).await?;
        let known: BTreeMap<[u8; 16], &Document> =
            collections.iter().filter_map(|c| Some((c.get("uuid")?.as_uuid()?, c))).collect();
        self.map.lock().chunks.retain(|uuid| known.contains_key(uuid));
        for (uuid, collection) in known {
            let Some(counted) = counted.get(&uuid) else { continue };
            let due = self.map.lock().chunks.due(uuid, collection, counted);
            if let Some(due) = due {
                let newer = due.ask(&mut self.asker).await?;
                self.map.lock().chunks.apply(due, &newer);
            }
        }
        self.map.lock().zones = zones;
        Ok(())
    }
}

fn set_name(connection: &str) -> &str {
    connection.split_once('/').map_or("", |(set, _)| set)
}

fn addresses(routers: &[Document], shards: &[Document], config: &str) -> Vec<String> {
    let routers = routers.iter().filter_map(|r| r.get_str("_id"));
    let shards = shards.iter().filter_map(|s| s.get_str("host")).flat_map(hosts);
    let all: BTreeSet<&str> = routers.chain(shards).chain(hosts(config)).collect();
    all.into_iter().map(str::to_string).collect()
}

fn append(d: &mut Document, more: Option<&Document>) {
    for (name, value) in more.into_iter().flat_map(Document::iter) {
        d.push(name, value.clone());
    }
}

fn members(connection: &str, said: &BTreeMap<String, Document>) -> Vec<Document> {
    let member = |host: &str| {
        let mut d = doc! { "name": host };
        append(&mut d, said.get(host));
        d
    };
    hosts(connection).map(member).collect()
}

async fn set(asker: &mut Asker, view: &mut Document) -> Result<()> {
    let status = asker.run("admin", doc! { "replSetGetStatus": 1 }).await?;
    let members = status.get_array("members").into_iter().flatten().filter_map(Value::as_document);
    let line = |m: &Document| doc! { "name": m.get("name").cloned(), "state": m.get("stateStr").cloned() };
    view.push("kind", "set");
    view.push("set", status.get("set").cloned());
    view.push("members", members.map(line).collect::<Vec<Document>>());
    Ok(())
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

/// The chunks, as the catalog has them.
fn counted(map: &Map) -> Shares {
    let mut shares = Shares::new();
    for table in map.chunks.tables() {
        let by_shard = shares.entry(table.ns.clone()).or_default();
        for (shard, tally) in table.tallies() {
            let share = by_shard.entry(shard.to_string()).or_default();
            share.chunks += tally.chunks;
            share.jumbo += tally.jumbo;
        }
    }
    shares
}

/// What was answered; nothing where a shard was asked that does not answer, of which `unanswered` gets a line. Where it is the
/// router that does not, the next question fails too.
fn answered<T>(answer: Result<T>, what: &str, unanswered: &mut Vec<String>) -> Option<T> {
    answer.inspect_err(|e| unanswered.push(format!("{what}: {}", e.message))).ok()
}

/// Bytes and orphans by collection and shard.
type Sizes = Vec<(String, String, i64, i64)>;

/// The bytes, as `$shardedDataDistribution` has them.
async fn sizes(asker: &mut Asker) -> Result<Sizes> {
    let mut sizes = Sizes::new();
    for of_collection in asker.of_shards(vec![doc! { "$shardedDataDistribution": {} }]).await? {
        let ns = of_collection.get_str("ns").unwrap_or_default();
        let shards = of_collection.get_array("shards").into_iter().flatten();
        for of_shard in shards.filter_map(Value::as_document) {
            let shard = of_shard.get_str("shardName").unwrap_or_default();
            let number = |name: &str| of_shard.get_i64(name).unwrap_or(0);
            sizes.push((ns.into(), shard.into(), number("ownedSizeBytes"), number("numOrphanedDocs")));
        }
    }
    Ok(sizes)
}

fn add_sizes(sizes: Option<&Sizes>, shares: &mut Shares) {
    for (ns, shard, bytes, orphans) in sizes.into_iter().flatten() {
        let share = shares.entry(ns.clone()).or_default().entry(shard.clone()).or_default();
        (share.bytes, share.orphans) = (*bytes, *orphans);
    }
}

/// Takes out what stands for bytes that nobody has told.
fn forget_bytes(view: &mut Document) {
    let rows = ["shards", "zones", "collections"];
    for list in rows {
        let Some(Value::Array(rows)) = view.get_mut(list) else { continue };
        for row in rows {
            let Value::Document(row) = row else { continue };
            row.remove("bytes");
            row.remove("orphans");
            let Some(Value::Array(shares)) = row.get_mut("shards") else { continue };
            for share in shares {
                if let Value::Document(share) = share {
                    share.remove("bytes");
                }
            }
        }
    }
}

fn shard(s: &Document, shares: &Shares, said: &BTreeMap<String, Document>) -> Document {
    let name = s.get_str("_id").unwrap_or_default();
    let own = shares.values().filter_map(|by_shard| by_shard.get(name).copied());
    let sum = own.fold(Share::default(), Share::plus);
    let members = members(s.get_str("host").unwrap_or_default(), said);
    let mut d = doc! {
        "_id": name, "host": s.get("host").cloned(), "draining": flag(s, "draining"),
        "zones": s.get_array("tags").cloned().unwrap_or_default(), "chunks": sum.chunks, "jumbo": sum.jumbo,
        "bytes": sum.bytes, "orphans": sum.orphans,
    };
    // In megabytes, of all that the shard holds.
    if let Some(most) = s.get_present("maxSize") {
        d.push("maxSize", most.clone());
    }
    let primary = members.iter().find(|m| m.get_str("state") == Some("primary"));
    for field in ["version", "rangeDeletions", "operations"] {
        if let Some(value) = primary.and_then(|m| m.get(field)) {
            d.push(field, value.clone());
        }
    }
    d.push("members", members);
    d
}

/// Every zone that a shard or a range has, with what is in its ranges.
fn zones(map: &Map, shards: &[Document], shares: &Shares) -> Vec<Document> {
    #[derive(Default)]
    struct Found {
        shards: BTreeSet<String>,
        ranges: i64,
        chunks: i64,
        misplaced: i64,
        bytes: i64,
    }
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for shard in shards {
        for zone in shard.get_array("tags").into_iter().flatten().filter_map(Value::as_str) {
            let of_zone = found.entry(zone.to_string()).or_default();
            of_zone.shards.insert(shard.get_str("_id").unwrap_or_default().to_string());
        }
    }
    for (ns, ranges) in &map.zones {
        for range in ranges {
            found.entry(range.name.clone()).or_default().ranges += 1;
        }
        let Some(table) = map.chunks.table(ns) else { continue };
        for (chunk, zone) in table.with_zones(ranges) {
            let Some(of_zone) = zone.and_then(|zone| found.get_mut(&zone.name)) else { continue };
            let share = shares.get(ns).and_then(|s| s.get(&chunk.shard)).copied().unwrap_or_default();
            of_zone.chunks += 1;
            of_zone.bytes += share.bytes / share.chunks.max(1);
            of_zone.misplaced += i64::from(!of_zone.shards.contains(&chunk.shard));
        }
    }
    let shown = |(name, f): (String, Found)| {
        let shards: Vec<Value> = f.shards.into_iter().map(Value::from).collect();
        doc! {
            "_id": name, "shards": shards, "ranges": f.ranges, "chunks": f.chunks, "misplaced": f.misplaced,
            "bytes": f.bytes,
        }
    };
    found.into_iter().map(shown).collect()
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

async fn balancer(asker: &mut Asker) -> Result<Document> {
    let status = asker.run("admin", doc! { "balancerStatus": 1 }).await?;
    let mut d = Document::new();
    for name in ["mode", "inBalancerRound", "numBalancerRounds"] {
        d.push(name, status.get(name).cloned());
    }
    let settings = asker.config("settings").await?;
    let window =
        settings.iter().find(|s| s.get_str("_id") == Some("balancer")).and_then(|s| s.get("activeWindow"));
    if let Some(window) = window {
        d.push("activeWindow", window.clone());
    }
    Ok(d)
}

/// Migrations under way: the donors' rows, with what their recipients have copied.
async fn migrations(asker: &mut Asker) -> Result<Vec<Document>> {
    let named = doc! { "desc": { "$in": array!["MoveChunk", "migrateThread"] } };
    let stages = vec![doc! { "$currentOp": { "allUsers": true } }, doc! { "$match": named }];
    let rows = asker.of_shards(stages).await?;
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

async fn rounds(asker: &mut Asker) -> Result<Vec<Document>> {
    let command = doc! {
        "find": "actionlog", "filter": { "what": "balancer.round" }, "sort": { "$natural": -1 }, "limit": ROUNDS,
        "batchSize": ROUNDS, "singleBatch": true,
    };
    let rounds = asker.all("config", command).await?;
    Ok(rounds
        .iter()
        .map(|r| doc! { "time": r.get("time").cloned(), "details": r.get("details").cloned() })
        .collect())
}

/// Migrations that have ended, the newest first, as their donors wrote them down.
async fn moves(asker: &mut Asker) -> Result<Vec<Document>> {
    let command = doc! {
        "find": "changelog", "filter": { "what": "moveChunk.from" }, "sort": { "$natural": -1 }, "limit": MOVES,
        "batchSize": MOVES, "singleBatch": true,
    };
    Ok(asker.all("config", command).await?.iter().filter_map(ended).collect())
}

/// An entry `moveChunk.from`: its time is the end, its steps are in milliseconds.
fn ended(entry: &Document) -> Option<Document> {
    let details = entry.get_document("details")?;
    let Some(Value::DateTime(end)) = entry.get("time") else { return None };
    let steps = details.iter().filter(|(name, _)| name.starts_with("step "));
    let millis: i64 = steps.filter_map(|(_, value)| value.as_i64()).sum();
    let mut d = doc! { "_id": entry.get("_id").cloned(), "ns": entry.get("ns").cloned() };
    for field in ["from", "to", "min", "max"] {
        d.push(field, details.get(field).cloned());
    }
    d.push("start", Value::DateTime(end - millis));
    d.push("end", Value::DateTime(*end));
    d.push("ok", details.get_str("note") == Some("success"));
    if let Some(reason) = details.get("errmsg") {
        d.push("errmsg", reason.clone());
    }
    Some(d)
}
