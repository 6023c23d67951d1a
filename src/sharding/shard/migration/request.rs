//! What a migration is asked to do, and the coordinator's document that survives a crash.

use super::{text, uuid_of};
use crate::key_pattern::ShardKeyPattern;
use document::{Doc, Document, ObjectId, Result, Value, bail, doc, err};
use node::operation::{NO_USER, SessionId};
use protocol::migration::Decision;
use protocol::version::ShardVersion;

/// `_shardsvrMoveRange`.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveRange {
    pub ns: String,
    pub from: String,
    pub to: String,
    /// At least one bound is given.
    pub min: Option<Document>,
    pub max: Option<Document>,
    pub max_bytes: i64,
    /// How many documents the range may have at most; not looked at where it is missing.
    pub max_objects: Option<i64>,
    pub epoch: Option<ObjectId>,
    /// 0: refuse what is too big; else move it.
    pub force_jumbo: i32,
    pub wait_for_delete: bool,
    /// The write concern that each batch of documents on the recipient waits for.
    pub throttle: Option<Document>,
    /// The balancer's note of it in `config.migrations`: once that is struck off, it is not committed any more. `None` for a user's.
    pub note: Option<ObjectId>,
}

impl MoveRange {
    pub fn to_document(&self) -> Document {
        let mut d = doc! {
            "_shardsvrMoveRange": self.ns.as_str(), "toShard": self.to.as_str(), "fromShard": self.from.as_str(),
        };
        for (name, bound) in [("min", &self.min), ("max", &self.max)] {
            if let Some(bound) = bound {
                d.push(name, bound.clone());
            }
        }
        d.push("maxChunkSizeBytes", self.max_bytes);
        if let Some(most) = self.max_objects {
            d.push("maxChunkObjects", most);
        }
        if let Some(epoch) = self.epoch {
            d.push("epoch", epoch);
        }
        d.push("forceJumbo", self.force_jumbo);
        d.push("waitForDelete", self.wait_for_delete);
        if let Some(concern) = &self.throttle {
            d.push("secondaryThrottle", concern.clone());
        }
        if let Some(note) = self.note {
            d.push("note", note);
        }
        d.push("writeConcern", crate::remote::majority());
        d
    }
    /// # Errors
    /// IDLFailedToParse (40414), InvalidOptions (72), BadValue (2).
    pub fn parse(body: Doc<'_>) -> Result<MoveRange> {
        let d = body.to_document();
        let Some((command, Value::String(ns))) = d.first() else {
            bail!(INVALID_NAMESPACE, "namespace is missing")
        };
        let needed = |name: &str| {
            d.get_str(name).map(str::to_string).ok_or_else(|| {
                err!(IDL_FAILED_TO_PARSE, "BSON field '{command}.{name}' is missing but a required field")
            })
        };
        let bound = |name: &str| d.get_document(name).filter(|b| !b.is_empty()).cloned();
        let request = MoveRange {
            ns: ns.to_string(),
            from: needed("fromShard")?,
            to: needed("toShard")?,
            min: bound("min"),
            max: bound("max"),
            max_bytes: d.get_i64("maxChunkSizeBytes").filter(|n| *n > 0).unwrap_or(128 << 20),
            max_objects: d.get_i64("maxChunkObjects").filter(|n| *n > 0),
            epoch: d.get("epoch").and_then(Value::as_object_id).filter(|e| *e != ObjectId([0; 12])),
            force_jumbo: match d.get("forceJumbo") {
                Some(Value::Boolean(b)) => i32::from(*b),
                v => v.and_then(Value::as_i64).unwrap_or(0) as i32,
            },
            wait_for_delete: d.get("waitForDelete").is_some_and(Value::truthy),
            throttle: throttle_of(d.get("secondaryThrottle")),
            note: d.get("note").and_then(Value::as_object_id),
        };
        if request.min.is_none() && request.max.is_none() {
            bail!(INVALID_OPTIONS, "need to specify at least one of 'min' and 'max'");
        }
        if request.from == request.to {
            bail!(
                INVALID_OPTIONS,
                "the donor and the recipient of a migration are the same shard {}",
                request.to
            );
        }
        Ok(request)
    }
}

/// What `secondaryThrottle` asks for: a write concern, or that of two members.
pub fn throttle_of(value: Option<&Value>) -> Option<Document> {
    match value? {
        Value::Document(concern) => Some(concern.clone()),
        other => other.truthy().then(|| doc! { "w": 2 }),
    }
}

/// A document of `config.migrationCoordinators`.
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinator {
    pub id: [u8; 16],
    pub session_id: String,
    pub lsid: SessionId,
    pub txn_number: i64,
    pub ns: String,
    pub uuid: [u8; 16],
    pub donor: String,
    pub recipient: String,
    pub min: Document,
    pub max: Document,
    pub key: Document,
    /// Version of the chunk that holds the range, before the migration.
    pub version: ShardVersion,
    pub decision: Option<Decision>,
}

impl Coordinator {
    pub fn new(node: &node::Node, request: &MoveRange, plan: &super::donor::Plan) -> Coordinator {
        Coordinator {
            id: node.new_uuid(),
            session_id: format!("{}_{}_{}", request.from, request.to, node.new_object_id().hex()),
            lsid: SessionId::of_client(node.new_uuid(), NO_USER),
            txn_number: 0,
            ns: request.ns.clone(),
            uuid: plan.table.uuid,
            donor: request.from.clone(),
            recipient: request.to.clone(),
            min: plan.min.clone(),
            max: plan.max.clone(),
            key: plan.table.key.document().clone(),
            version: plan.chunk_version,
            decision: None,
        }
    }
    pub fn range(&self) -> Document {
        doc! { "min": self.min.clone(), "max": self.max.clone() }
    }
    pub fn to_document(&self) -> Document {
        let mut d = doc! {
            "_id": Value::uuid(self.id), "migrationSessionId": self.session_id.as_str(),
            "lsid": self.lsid.to_document(), "txnNumber": self.txn_number, "nss": self.ns.as_str(),
            "collectionUuid": Value::uuid(self.uuid), "donorShardId": self.donor.as_str(),
            "recipientShardId": self.recipient.as_str(), "range": self.range(),
            "preMigrationChunkVersion": self.version.to_document(), "shardKeyPattern": self.key.clone(),
        };
        if let Some(decision) = self.decision {
            d.push("decision", decision.name());
        }
        d
    }
    /// # Errors
    /// IncompatibleShardingMetadata (105) for a document that is none.
    pub fn from_document(d: &Document) -> Result<Coordinator> {
        let read = || {
            let range = d.get_document("range")?;
            Some(Coordinator {
                id: uuid_of(d, "_id")?,
                session_id: text(d, "migrationSessionId"),
                lsid: SessionId::parse(d.get_document("lsid")?.to_doc_buf().doc()).ok()?,
                txn_number: d.get_i64("txnNumber").unwrap_or(0),
                ns: d.get_str("nss")?.to_string(),
                uuid: uuid_of(d, "collectionUuid")?,
                donor: d.get_str("donorShardId")?.to_string(),
                recipient: d.get_str("recipientShardId")?.to_string(),
                min: range.get_document("min")?.clone(),
                max: range.get_document("max")?.clone(),
                key: d.get_document("shardKeyPattern").cloned().unwrap_or_default(),
                version: ShardVersion::from_document(d.get_document("preMigrationChunkVersion")?)?,
                decision: d.get_str("decision").and_then(Decision::parse),
            })
        };
        read()
            .ok_or_else(|| err!(INCOMPATIBLE_SHARDING_METADATA, "bad migration coordinator document: {d:?}"))
    }
}

/// `_recvChunkStart`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecvStart {
    pub id: [u8; 16],
    pub session_id: String,
    pub ns: String,
    pub uuid: [u8; 16],
    pub from: String,
    pub from_host: String,
    pub to: String,
    pub min: Document,
    pub max: Document,
    pub key: Document,
    /// Options and indexes of the donor's collection.
    pub options: Document,
    pub indexes: Vec<Document>,
    pub lsid: Document,
    pub txn_number: i64,
    pub throttle: Option<Document>,
}

impl RecvStart {
    pub fn to_document(&self) -> Document {
        let mut d = doc! {
            "_recvChunkStart": self.ns.as_str(), "uuid": Value::uuid(self.id), "lsidOfMigration": self.lsid.clone(),
            "txnNumberOfMigration": self.txn_number, "sessionId": self.session_id.as_str(),
            "from": self.from_host.as_str(), "fromShardName": self.from.as_str(), "toShardName": self.to.as_str(),
            "min": self.min.clone(), "max": self.max.clone(), "shardKeyPattern": self.key.clone(),
            "parallelMigrateCloneSupported": true,
            "collection": {
                "uuid": Value::uuid(self.uuid), "options": self.options.clone(), "indexes": self.indexes.clone(),
            },
            "writeConcern": crate::remote::majority(),
        };
        if let Some(concern) = &self.throttle {
            d.push("secondaryThrottle", concern.clone());
        }
        d
    }
    /// # Errors
    /// UnsupportedFormat (12) for empty bounds or key, IDLFailedToParse (40414) for what is missing.
    pub fn parse(body: Doc<'_>) -> Result<RecvStart> {
        let d = body.to_document();
        for name in ["min", "max", "shardKeyPattern"] {
            if d.get_document(name).is_none_or(Document::is_empty) {
                bail!(12, "The field '{name}' of _recvChunkStart is missing or empty");
            }
        }
        let missing = |name: &str| {
            err!(IDL_FAILED_TO_PARSE, "BSON field '_recvChunkStart.{name}' is missing but a required field")
        };
        let collection = d.get_document("collection").ok_or_else(|| missing("collection"))?;
        let document = |name: &str| d.get_document(name).cloned().unwrap_or_default();
        let start = RecvStart {
            id: uuid_of(&d, "uuid").ok_or_else(|| missing("uuid"))?,
            session_id: d.get_str("sessionId").ok_or_else(|| missing("sessionId"))?.to_string(),
            ns: text(&d, "_recvChunkStart"),
            uuid: uuid_of(collection, "uuid").ok_or_else(|| missing("collection.uuid"))?,
            from: d.get_str("fromShardName").ok_or_else(|| missing("fromShardName"))?.to_string(),
            from_host: text(&d, "from"),
            to: text(&d, "toShardName"),
            min: document("min"),
            max: document("max"),
            key: document("shardKeyPattern"),
            options: collection.get_document("options").cloned().unwrap_or_default(),
            indexes: collection
                .get_array("indexes")
                .into_iter()
                .flatten()
                .filter_map(|v| v.as_document().cloned())
                .collect(),
            lsid: document("lsidOfMigration"),
            txn_number: d.get_i64("txnNumberOfMigration").unwrap_or(0),
            throttle: d.get_document("secondaryThrottle").cloned(),
        };
        let key = ShardKeyPattern::parse(&start.key)?;
        key.encode_bound(&start.min)?;
        key.encode_bound(&start.max)?;
        Ok(start)
    }
}
