//! `_shardsvrRefineCollectionShardKey`: a shard key gets more fields.
//!
//! ```text
//! checkPreconditions   the new key extends the old one, and every owner has an index for it
//! freezeMigrations     none is under way, none begins
//! blockCRUD            the collection is blocked on every shard; the indexes are looked at again
//! commit               the config server's documents, at once, with a new epoch and timestamp
//! releaseCritSec       what was known of the collection is forgotten; those who waited learn the new key
//! ```
//! A key that is refined already is left as it is.

use super::block::BlockType;
use super::coordinator::{Coordinator, namespace, uuid_of};
use super::{Ddl, create, timeseries};
use crate::config::refine::not_an_extension;
use crate::config::{required, required_doc};
use crate::driver::phase_of;
use crate::key_pattern::ShardKeyPattern;
use crate::messages::ddl::{CommitRefine, ValidateShardKey};
use crate::messages::{Flag, Message};
use crate::routing::Routing;
use crate::routing::table::SERIES;
use document::{Document, ObjectId, Result, Value, bail, doc};
use futures::future::BoxFuture;
use node::{Operation, Request};
use protocol::ddl::protocols::RefinePhase;
use protocol::ddl::{Protocol, protocols};

/// Whether unique indexes must go with the key.
const ENFORCED: &str = "enforceUniquenessCheck";

pub(super) struct Refine;

impl Coordinator for Refine {
    fn protocol(&self) -> &'static Protocol {
        &protocols::REFINE_SHARD_KEY
    }
    fn run<'a>(&'a self, ddl: &'a Ddl, phase: &'a str, state: &'a mut Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let phase = phase_of(RefinePhase::named(phase), phase)?;
            if phase == RefinePhase::CheckPreconditions {
                return ddl.check_refine(state).await;
            }
            if is_refined(state) {
                return Ok(());
            }
            let ns = namespace(state).to_string();
            match phase {
                RefinePhase::CheckPreconditions => Ok(()),
                RefinePhase::FreezeMigrations => ddl.freeze(&ns, uuid_of(state)).await,
                RefinePhase::BlockCrud => {
                    ddl.block_everywhere(&ns, BlockType::ReadsAndWrites, &reason(state)).await?;
                    ddl.validate_on_owners(state).await
                }
                RefinePhase::Commit => ddl.commit_refine(state).await,
                RefinePhase::ReleaseCriticalSection => {
                    ddl.block_everywhere(&ns, BlockType::Unblock, &reason(state)).await
                }
            }
        })
    }
    fn also_locks(&self, state: &Document) -> Vec<String> {
        timeseries::also_locked(namespace(state), state)
    }
    fn undo<'a>(&'a self, ddl: &'a Ddl, state: &'a Document) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            ddl.block_everywhere(namespace(state), BlockType::Unblock, &reason(state)).await?;
            ddl.thaw(namespace(state), uuid_of(state)).await
        })
    }
}

fn reason(state: &Document) -> Document {
    doc! { "command": "refineCollectionShardKey", "ns": namespace(state) }
}
fn key(state: &Document) -> Result<&Document> {
    required_doc(state, "newShardKey")
}
/// The key was the wanted one before the operation began.
fn is_refined(state: &Document) -> bool {
    state.get_bool("alreadyRefined").unwrap_or(false)
}

impl Ddl {
    /// Runs `_shardsvrRefineCollectionShardKey`.
    ///
    /// # Errors
    /// NamespaceNotSharded (118), InvalidOptions (72) for a key that does not extend the present one or has no index,
    /// CollectionUUIDMismatch (361).
    pub(super) async fn refine_shard_key(&self, op: &Operation, request: Request<'_>) -> Result<Document> {
        let ns = request.namespace()?;
        self.check_primary(op, request.db).await?;
        let body = request.body.to_document();
        let asked = doc! { "key": required_doc(&body, "newShardKey")?.clone() };
        let (ns, asked) = self.on_buckets(ns, asked)?;
        let pattern = ShardKeyPattern::parse(required_doc(&asked, "key")?)?;
        let mut fields = doc! { "newShardKey": pattern.document().clone() };
        if let Some(series) = asked.get(SERIES) {
            fields.push(SERIES, series.clone());
        }
        for (given, kept) in [("collectionUUID", "expectedUUID"), (ENFORCED, ENFORCED)] {
            if let Some(value) = body.get_present(given) {
                fields.push(kept, value.clone());
            }
        }
        self.coordinate(op, &Refine, &ns, fields).await?;
        Ok(Document::new())
    }

    async fn check_refine(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        self.check_buckets(&ns, state)?;
        let pattern = ShardKeyPattern::parse(key(state)?)?;
        let found = self.tracked(&ns).await?.filter(|d| d.get_bool("unsplittable") != Some(true));
        let Some(found) = found else { bail!(NAMESPACE_NOT_SHARDED, "Namespace {ns} is not sharded") };
        let uuid = required(&found, "uuid", Value::as_uuid)?;
        if let Some(expected) = state.get("expectedUUID").and_then(Value::as_uuid).filter(|e| *e != uuid) {
            return Err(self.role.node.uuid_mismatch(&ns, expected));
        }
        let present = ShardKeyPattern::parse(required_doc(&found, "key")?)?;
        state.insert("collectionUUID", Value::uuid(uuid));
        state.insert("oldKey", present.document().clone());
        state.insert("oldTimestamp", required(&found, "timestamp", Value::as_timestamp)?);
        state.insert("unique", found.get_bool("unique").unwrap_or(false));
        state.insert("newEpoch", self.role.node.new_object_id());
        if present == pattern {
            state.insert("alreadyRefined", true);
            return Ok(());
        }
        if !pattern.extends(&present) {
            bail!(INVALID_OPTIONS, "{}", not_an_extension(pattern.document(), present.document()));
        }
        self.validate_on_owners(state).await?;
        let details = doc! { "oldKey": present.document().clone(), "newKey": pattern.document().clone() };
        self.log_change("refineCollectionShardKey.start", &ns, details).await;
        Ok(())
    }

    /// Every shard that owns a chunk must have an index for the new key: none is made for it.
    async fn validate_on_owners(&self, state: &Document) -> Result<()> {
        let ns = namespace(state);
        let owners: Vec<String> = match self.role.cache.refresh_collection(ns).await? {
            Routing::Sharded(table) => table.shards().map(|s| s.to_string()).collect(),
            Routing::Unsharded => bail!(NAMESPACE_NOT_SHARDED, "Namespace {ns} is not sharded"),
        };
        let validate = ValidateShardKey {
            ns: ns.to_string(),
            key: key(state)?.clone(),
            unique: Flag(state.get_bool("unique").unwrap_or(false)),
            enforced: state.get_present(ENFORCED).map(Value::truthy),
        };
        self.on_shards(&owners, "admin", validate.to_document()).await.map(drop)
    }

    /// Runs [`ValidateShardKey`].
    pub(super) async fn validate_key_candidate(&self, request: Request<'_>) -> Result<Document> {
        let ValidateShardKey { ns, key, unique, enforced } = ValidateShardKey::parse(request.body)?;
        let pattern = ShardKeyPattern::parse(&key)?;
        let mut rules =
            doc! { "implicitlyCreateIndex": false, "collation": { "locale": "simple" }, "unique": unique.0 };
        if let Some(enforced) = enforced {
            rules.push(ENFORCED, enforced);
        }
        create::check_indexes(&self.role.node, &ns, &pattern, &rules).await?;
        Ok(Document::new())
    }

    async fn commit_refine(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let epoch: ObjectId = required(state, "newEpoch", Value::as_object_id)?;
        let known = required(state, "oldTimestamp", Value::as_timestamp)?;
        let commit = CommitRefine { ns: ns.clone(), key: key(state)?.clone(), epoch, known };
        self.config(commit.to_document()).await?;
        self.note_refined(state).await?;
        let details = doc! { "newKey": key(state)?.clone(), "newEpoch": epoch };
        self.log_change("refineCollectionShardKey.end", &ns, details).await;
        Ok(())
    }

    /// Tells change streams.
    async fn note_refined(&self, state: &mut Document) -> Result<()> {
        let ns = namespace(state).to_string();
        let old = state.get_document("oldKey").cloned().unwrap_or_default();
        let note = doc! { "refineCollectionShardKey": ns.as_str(), "shardKey": key(state)?.clone(), "oldShardKey": old };
        let uuid = uuid_of(state);
        self.tell_streams(state, &ns, uuid, note).await
    }
}
