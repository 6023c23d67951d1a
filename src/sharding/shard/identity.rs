//! Who this shard is: the document `shardIdentity` of `admin.system.version`, written once when the shard is added.

use super::ShardRole;
use super::placement::{CollectionPlacement, DatabaseState};
use super::refresh::Refreshing;
use super::{ddl, migration, persisted, range_deleter};
use crate::chunk::ShardId;
use crate::config::dedicated::CONFIG_SHARD;
use crate::sessions;
use document::{Doc, Document, ObjectId, Result, bail, doc, err};
use node::Operation;
use node::ddl::collections::drop_collection;
use node::namespace::{DatabasePlacement, Placement};
use node::observer::WriteObserver;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

pub const VERSION_COLLECTION: &str = "admin.system.version";
const ID: &str = "shardIdentity";

#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    pub name: ShardId,
    pub cluster_id: ObjectId,
    pub config: String,
}

impl Identity {
    pub fn from_document(d: &Document) -> Result<Identity> {
        let missing = |what: &str| {
            err!(IDL_FAILED_TO_PARSE, "BSON field 'shardIdentity.{what}' is missing but a required field")
        };
        Ok(Identity {
            name: d.get_str("shardName").ok_or_else(|| missing("shardName"))?.into(),
            cluster_id: d
                .get("clusterId")
                .and_then(|v| v.as_object_id())
                .ok_or_else(|| missing("clusterId"))?,
            config: d
                .get_str("configsvrConnectionString")
                .ok_or_else(|| missing("configsvrConnectionString"))?
                .to_string(),
        })
    }
    pub fn to_document(&self) -> Document {
        doc! {
            "_id": ID, "shardName": &*self.name, "clusterId": self.cluster_id,
            "configsvrConnectionString": self.config.as_str(),
        }
    }
}

/// Notices an identity that the config server writes as a plain document.
struct Noticed(Weak<ShardRole>);
impl Noticed {
    fn look(&self, d: Doc<'_>) {
        let (Some(role), Some(ID)) = (self.0.upgrade(), d.get_str("_id")) else { return };
        let Ok(identity) = Identity::from_document(&d.to_document()) else { return };
        // Told under the latch of the collection: what follows takes others.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime::spawn_on(&runtime, async move {
                let primary = role.node.is_writable();
                let _ = role.assume(identity, primary).await;
            });
        }
    }
}
impl WriteObserver for Noticed {
    fn inserted(&self, _ns: &str, doc: Doc<'_>) {
        self.look(doc);
    }
    fn updated(&self, _ns: &str, new: Doc<'_>) {
        self.look(new);
    }
    fn deleted(&self, _ns: &str, old: Doc<'_>) {
        let (Some(role), Some(ID)) = (self.0.upgrade(), old.get_str("_id")) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime::spawn_on(&runtime, async move { role.leave().await });
        }
    }
}

/// Whether the collections of a database are placed by the config server.
pub fn is_placed(ns: &str) -> bool {
    let db = ns.split('.').next().unwrap_or(ns);
    !document::is_internal_database(db) || ns == "config.system.sessions"
}

impl ShardRole {
    /// Reads the identity, if there is one, and takes up interrupted migrations and range deletions. Returns when
    /// requests may be served: namespaces whose migration is undecided are blocked by then.
    ///
    /// # Errors
    /// A damaged identity; a failed log.
    pub async fn start(&self) -> Result<()> {
        self.read_identity()?;
        self.read_config_time()?;
        match self.identity() {
            Some(_) => self.resume().await,
            None => Ok(()),
        }
    }

    /// Reads the identity, if there is one, and from then on notices one that is written.
    ///
    /// # Errors
    /// A damaged identity.
    pub fn read_identity(&self) -> Result<()> {
        if !self.watching.swap(true, Ordering::SeqCst) {
            self.node.observers.add(VERSION_COLLECTION, Arc::new(Noticed(self.me.clone())));
            self.node.namespaces.set_learner(Arc::new(Refreshing(self.me.clone())));
            let me = self.me.clone();
            // A member that copied everything is a shard by what it copied.
            self.node.observers.on_exchange(Arc::new(move || {
                if let Some(role) = me.upgrade() {
                    drop(role.read_identity());
                }
            }));
            for ns in [persisted::COLLECTIONS, persisted::DATABASES, ddl::block::SECTIONS] {
                self.node.observers.add(ns, Arc::new(persisted::Listener(self.me.clone())));
            }
        }
        match self.local.find_one(VERSION_COLLECTION, &doc! { "_id": ID })? {
            Some(d) => self.become_shard(Identity::from_document(&d)?),
            None => {
                // The primary may have an identity that did not come yet: what names a version is refused until it does.
                if self.identity().is_none() {
                    self.forget_placements(&ShardId::from(""));
                }
                Ok(())
            }
        }
    }

    /// `_shardsvrAddShard`: this node is a shard from now on. What its set has said of sessions is of no cluster, and would be in
    /// the way of the chunks that come, so that goes first.
    ///
    /// # Errors
    /// IllegalOperation (20) when it already is another; those of writing here.
    pub async fn add_shard(&self, identity: Identity) -> Result<()> {
        // One request at a time: what has come since another one made a shard of this node is the cluster's.
        let _one = self.assuming.lock().await;
        if let Some(own) = self.identity()
            && (own.name != identity.name || own.cluster_id != identity.cluster_id)
        {
            bail!(
                ILLEGAL_OPERATION,
                "this node is already shard {} of cluster {}",
                own.name,
                own.cluster_id.hex()
            );
        }
        if self.local.find_one(VERSION_COLLECTION, &doc! { "_id": ID })?.is_none() {
            drop_collection(&self.node, &Operation::internal(), sessions::NS, false).await?;
        }
        self.local.put(VERSION_COLLECTION, &identity.to_document()).await?;
        self.take_on(identity, true).await
    }

    /// Takes the identity on, and a shard's work where this is the primary.
    async fn assume(&self, identity: Identity, primary: bool) -> Result<()> {
        // The document's observer calls this, and a request; whoever comes second returns when the first is done.
        let _one = self.assuming.lock().await;
        self.take_on(identity, primary).await
    }
    async fn take_on(&self, identity: Identity, primary: bool) -> Result<()> {
        self.become_shard(identity)?;
        match primary && !self.resumed.load(Ordering::SeqCst) {
            true => self.resume().await,
            false => Ok(()),
        }
    }

    /// The config server ceases to be a shard.
    async fn leave(&self) {
        let _one = self.assuming.lock().await;
        // It may have become one again.
        if matches!(self.local.find_one(VERSION_COLLECTION, &doc! { "_id": ID }), Ok(Some(_))) {
            return;
        }
        if self.identity().is_some_and(|own| &*own.name == CONFIG_SHARD) {
            match self.halt.get() {
                Some(halt) => halt(),
                None => self.stop(),
            }
            *self.identity.write() = None;
            // Under its name: routers that still ask here must know whose placement has changed.
            self.forget_placements(&ShardId::from(CONFIG_SHARD));
        }
    }

    fn become_shard(&self, identity: Identity) -> Result<()> {
        if let Some(own) = self.identity() {
            if own.name != identity.name || own.cluster_id != identity.cluster_id {
                bail!(ILLEGAL_OPERATION, "the identity of a shard cannot change");
            }
            // The config server's members may have changed.
            self.remote.registry.set_config(&identity.config);
            *self.identity.write() = Some(Arc::new(identity));
            return Ok(());
        }
        self.remote.registry.set_config(&identity.config);
        self.forget_placements(&identity.name);
        *self.identity.write() = Some(Arc::new(identity));
        Ok(())
    }

    /// Knows nothing of placement any more: the config server is asked anew. What was known in an earlier reign may have
    /// changed under another primary.
    pub(super) fn forget_placements(&self, name: &ShardId) {
        let own = name.clone();
        self.node.namespaces.set_default_placement(Some(Arc::new(move |ns: &str| {
            is_placed(ns).then(|| Arc::new(CollectionPlacement::unknown(ns, &own)) as Arc<dyn Placement>)
        })));
        let own = name.clone();
        self.node.namespaces.set_default_database_placement(Some(Arc::new(move |db: &str| {
            let placed = !document::is_internal_database(db);
            placed.then(|| Arc::new(DatabaseState::unknown(db, &own)) as Arc<dyn DatabasePlacement>)
        })));
    }

    /// Takes up interrupted migrations and range deletions. Called for each reign, before its first write.
    async fn resume(&self) -> Result<()> {
        if let Some(identity) = self.identity() {
            self.forget_placements(&identity.name);
        }
        for ns in [migration::COORDINATORS, migration::RECIPIENTS, range_deleter::TASKS] {
            self.local.ensure_collection(ns, &[]).await?;
        }
        let Some(role) = self.strong() else { return Ok(()) };
        self.resumed.store(true, Ordering::SeqCst);
        self.ended.store(false, Ordering::SeqCst);
        self.stand_still_if_written()?;
        migration::recovery::recover(&role).await?;
        range_deleter::start(&role);
        role.recover_coordinators().await
    }
}
