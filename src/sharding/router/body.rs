//! Commands for shards, made from the client's by copying its fields as they are.
//!
//! What a client may not say to a shard (versions, another node's times) is left out; what a shard must know of the
//! router is added: the placement the router believes in, and the newest times.

use crate::chunk::ShardId;
use crate::config_time;
use crate::remote::write_cluster_time;
use crate::routing::RoutingTable;
use document::{Doc, DocBuf, DocWriter, Document, Timestamp, Value};
use protocol::version::{DatabaseVersion, ShardVersion};
use std::sync::Arc;

/// The newest times that the router has heard of; every request names those that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    pub cluster: Timestamp,
    pub config: Timestamp,
}

/// What a request says of the placement it was targeted by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Versions {
    pub shard: Option<ShardVersion>,
    pub database: Option<DatabaseVersion>,
}

impl Versions {
    pub const NONE: Versions = Versions { shard: None, database: None };

    pub fn write(&self, w: &mut DocWriter<'_>) {
        if let Some(version) = &self.shard {
            version.write(w, "shardVersion");
        }
        if let Some(version) = &self.database {
            version.write(w, "databaseVersion");
        }
    }
}

/// Where a namespace's data is, as far as the router knows.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The primary of the database: where unsharded collections are.
    pub primary: ShardId,
    /// Absent for `config` and `admin`, which never move.
    pub database: Option<DatabaseVersion>,
    /// Present when the collection is sharded.
    pub table: Option<Arc<RoutingTable>>,
    /// Present when the collection is not sharded and the catalog says where it is.
    pub alone: Option<Arc<RoutingTable>>,
    /// The table in force, where `table` says how it was at a time in the past.
    pub now: Option<Arc<RoutingTable>>,
}

impl Placement {
    /// As it was at a time in the past, for reads of that time. Requests still carry the versions in force.
    ///
    /// # Errors
    /// StaleChunkHistory (250).
    pub fn at(self, time: Timestamp) -> document::Result<Placement> {
        let in_force = self.table.clone().or_else(|| self.alone.clone());
        let then = in_force.as_ref().map(|table| table.at(time)).transpose()?.flatten().map(Arc::new);
        Ok(match (then, &self.table) {
            (None, _) => self,
            (then, Some(_)) => Placement { now: in_force, table: then, ..self },
            (then, None) => Placement { now: in_force, alone: then, ..self },
        })
    }
    /// What a request to `shard` has to carry.
    pub fn versions(&self, shard: &str) -> Versions {
        match (self.now.as_ref().or(self.table.as_ref()).or(self.alone.as_ref()), self.database) {
            (Some(table), _) => Versions { shard: Some(table.shard_version(shard)), database: None },
            (None, Some(version)) => {
                Versions { shard: Some(ShardVersion::UNTRACKED), database: Some(version) }
            }
            (None, None) => Versions::NONE,
        }
    }
    /// What a request for the database as such has to carry.
    pub fn database_versions(&self) -> Versions {
        Versions { shard: None, database: self.database }
    }
    /// Every shard that can hold data of the namespace.
    pub fn shards(&self) -> Vec<ShardId> {
        match &self.table {
            Some(table) => table.shards().cloned().collect(),
            None => vec![self.home().clone()],
        }
    }
    /// Where a collection that is not sharded is.
    pub fn home(&self) -> &ShardId {
        self.alone.as_ref().and_then(|table| table.shards().next()).unwrap_or(&self.primary)
    }
}

/// Fields that a shard hears from the router only.
fn is_routers(name: &[u8]) -> bool {
    matches!(
        name,
        b"$clusterTime"
            | b"$configTime"
            | b"$topologyTime"
            | b"$db"
            | b"shardVersion"
            | b"databaseVersion"
            | b"$audit"
            | b"mayMoveDocument"
            | b"mayBypassWriteBlocking"
    )
}

/// The client's command without the fields in `without`, ended by what `more` writes and by what every request carries.
pub fn forward(
    body: Doc<'_>,
    db: &str,
    without: &[&str],
    clock: Clock,
    versions: &Versions,
    more: impl FnOnce(&mut DocWriter<'_>),
) -> DocBuf {
    let mut out = Vec::with_capacity(body.bytes().len() + 256);
    DocWriter::write(&mut out, |w| {
        for e in body.iter() {
            let name = e.name_bytes();
            if !is_routers(name) && !without.iter().any(|n| n.as_bytes() == name) {
                w.element(&e);
            }
        }
        more(w);
        trailer(w, db, clock, versions);
    });
    DocBuf::from_validated(out)
}

/// A command of the router's own.
pub fn own(command: &Document, db: &str, clock: Clock, versions: &Versions) -> DocBuf {
    DocWriter::build(|w| {
        command.write_fields(w);
        trailer(w, db, clock, versions);
    })
}

fn trailer(w: &mut DocWriter<'_>, db: &str, clock: Clock, versions: &Versions) {
    versions.write(w);
    if clock.config != Timestamp::default() {
        w.timestamp(config_time::FIELD, clock.config);
    }
    write_cluster_time(w, clock.cluster);
    w.string("$db", db);
}

/// The members of `body` that are in `names`, in the body's order.
pub fn take(body: Doc<'_>, names: &[&str]) -> Document {
    body.iter()
        .filter(|e| names.contains(&e.name()))
        .map(|e| (e.name().to_string(), e.value().to_value()))
        .collect()
}

/// The reply without what each node adds for itself; the dispatcher adds the router's own.
pub fn strip_times(reply: Doc<'_>) -> DocBuf {
    let mut out = Vec::with_capacity(reply.bytes().len());
    DocWriter::write(&mut out, |w| {
        for e in reply.iter() {
            if !is_time(e.name_bytes()) {
                w.element(&e);
            }
        }
    });
    DocBuf::from_validated(out)
}

/// Whether a reply's field speaks for the node that made it.
pub fn is_time(name: &[u8]) -> bool {
    matches!(
        name,
        b"$clusterTime"
            | b"operationTime"
            | b"$configTime"
            | b"$topologyTime"
            | b"$gleStats"
            | b"lastCommittedOpTime"
    )
}

/// Puts another id into `cursor.id` of a reply; `false` when the reply has no such 64-bit member.
pub fn patch_cursor_id(reply: &mut [u8], id: i64) -> bool {
    let base = reply.as_ptr() as usize;
    let at = Doc::from_validated(reply)
        .get_document("cursor")
        .and_then(|c| c.element("id"))
        .filter(|e| e.tag() == 0x12)
        .map(|e| e.value_bytes().as_ptr() as usize - base);
    match at {
        Some(at) => {
            reply[at..at + 8].copy_from_slice(&id.to_le_bytes());
            true
        }
        None => false,
    }
}

/// The documents of the batch that a cursor's reply carries.
pub fn batch<'d>(reply: Doc<'d>) -> impl Iterator<Item = Doc<'d>> + use<'d> {
    let cursor = reply.get_document("cursor");
    let batch = cursor.and_then(|c| c.get("firstBatch").or_else(|| c.get("nextBatch"))?.as_array());
    batch.into_iter().flat_map(|b| b.iter()).filter_map(|e| e.value().as_document())
}

/// `cursor.id` of a reply; 0 when there is none.
pub fn cursor_id(reply: Doc<'_>) -> i64 {
    reply.get_document("cursor").and_then(|c| c.get_i64("id")).unwrap_or(0)
}

/// Builds the elements of a BSON array one by one.
#[derive(Default)]
pub struct ArrayBuilder {
    bytes: Vec<u8>,
    count: usize,
}

impl ArrayBuilder {
    pub fn push(&mut self, doc: Doc<'_>) {
        let mut w = DocWriter::resume(&mut self.bytes);
        w.with_index(self.count, |w, name| w.document(name, doc));
        self.count += 1;
    }
    pub fn len(&self) -> usize {
        self.count
    }
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }
    /// Writes the array under `name`.
    pub fn write(&self, w: &mut DocWriter<'_>, name: &str) {
        w.array_with(name, |w| w.buffer().extend_from_slice(&self.bytes));
    }
}

/// `{cursor: {<batch>: [...], id, ns}, ok: 1}`.
pub fn cursor_reply(batch_name: &str, batch: &ArrayBuilder, id: i64, ns: &str) -> DocBuf {
    stream_reply(batch_name, batch, id, ns, None)
}

/// The same with the token to resume a change stream behind.
pub fn stream_reply(
    batch_name: &str,
    batch: &ArrayBuilder,
    id: i64,
    ns: &str,
    token: Option<&Document>,
) -> DocBuf {
    let mut out = Vec::with_capacity(batch.byte_len() + 128);
    DocWriter::write(&mut out, |w| {
        w.document_with("cursor", |w| {
            batch.write(w, batch_name);
            if let Some(token) = token {
                w.document_with("postBatchResumeToken", |w| token.write_fields(w));
            }
            w.i64("id", id);
            w.string("ns", ns);
        });
        w.double("ok", 1.0);
    });
    DocBuf::from_validated(out)
}

/// The reply with another name as its cursor's `ns`.
pub fn renamed_cursor(reply: Doc<'_>, ns: &str) -> DocBuf {
    let mut out = Vec::with_capacity(reply.bytes().len() + ns.len());
    DocWriter::write(&mut out, |w| {
        for e in reply {
            match e.value().as_document().filter(|_| e.name() == "cursor") {
                Some(cursor) => w.document_with("cursor", |w| {
                    for member in cursor {
                        match member.name() {
                            "ns" => w.string("ns", ns),
                            _ => w.element(&member),
                        }
                    }
                }),
                None => w.element(&e),
            }
        }
    });
    DocBuf::from_validated(out)
}

/// A reply of the given members, with ok.
pub fn ok_reply(mut members: Document) -> DocBuf {
    members.push("ok", Value::Double(1.0));
    members.to_doc_buf()
}
