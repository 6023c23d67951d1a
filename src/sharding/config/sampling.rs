//! Which collection a name stands for, asked by the config server for the sampling of its queries.

use super::ConfigServer;
use crate::remote::Target;
use document::{Document, Result, bail, doc};
use node::sampling::Configuration;

impl ConfigServer {
    /// The UUID of a collection, tracked or not; `None` where there is none of the name.
    ///
    /// # Errors
    /// CommandNotSupportedOnView (166), IllegalOperation (20) for a time series; those of asking the primary of its database.
    pub async fn collection_uuid(&self, ns: &str) -> Result<Option<[u8; 16]>> {
        if let Some(tracked) = self.catalog().find_collection(ns)? {
            return Ok(Some(tracked.info.uuid));
        }
        let (db, name) = ns.split_once('.').unwrap_or((ns, ""));
        let Some(database) = self.catalog().database(db) else { return Ok(None) };
        let command = doc! { "listCollections": 1, "filter": { "name": name } };
        let host = self.catalog().shard(&database.primary)?.host;
        let reply = self.remote.run(Target::Host(&host), db, command.to_doc_buf()).await?;
        let Some(found) = crate::router::body::batch(reply.doc()).next() else { return Ok(None) };
        node::sampling::analyzers::check_type(ns, found.get_str("type"))?;
        let Some(uuid) = found.get_document("info").and_then(|i| i.get("uuid")?.as_uuid()) else {
            bail!(INTERNAL_ERROR, "collection {ns} has no UUID")
        };
        Ok(Some(uuid))
    }

    /// Ends the sampling of collections that were dropped, renamed or given another UUID. One whose shard cannot be asked stays.
    ///
    /// # Errors
    /// Those of the writes.
    pub async fn forget_gone_analyzers(&self) -> Result<()> {
        for known in self.node.query_analyzers()? {
            if self.is_gone(&known).await {
                self.node.forget_query_analyzer(&known).await?;
            }
        }
        Ok(())
    }
    async fn is_gone(&self, known: &Configuration) -> bool {
        match self.collection_uuid(&known.ns).await {
            Ok(uuid) => uuid != Some(known.uuid),
            // A view or a time series has taken the name.
            Err(e) => {
                use document::codes::{COMMAND_NOT_SUPPORTED_ON_VIEW, ILLEGAL_OPERATION};
                matches!(e.code, COMMAND_NOT_SUPPORTED_ON_VIEW | ILLEGAL_OPERATION)
            }
        }
    }

    /// Configures the sampling of a collection; the reply of `configureQueryAnalyzer`.
    ///
    /// # Errors
    /// NamespaceNotFound (26), and those of [`ConfigServer::collection_uuid`].
    pub async fn configure_query_analyzer(
        &self,
        ns: &str,
        mode: node::sampling::analyzers::Mode,
    ) -> Result<Document> {
        self.ensure().await?;
        let Some(uuid) = self.collection_uuid(ns).await? else {
            bail!(NAMESPACE_NOT_FOUND, "The namespace does not exist: {ns}")
        };
        self.node.configure_query_analyzer(ns, uuid, mode).await
    }
}
