//! Keeping migrations out of a collection whose catalog entry is about to change.
//!
//! A migration copies a frozen picture of its range, and would bring back what a drop or a rename has removed meanwhile. So
//! an operation that drops, renames, re-keys or relocates a collection begins thus:
//!
//! ```text
//! config server   allowMigrations: false     no migration begins (the donor asks) and none commits
//! every shard     stop                       what runs gives way, or has committed; it has ended when this returns
//! ```
//! A recipient that registers itself after this asks the catalog before it makes the collection, and hears that it may
//! not; see `shard/migration/recipient.rs`. The flag goes with the catalog entry, or is taken back.

use super::Ddl;
use crate::messages::chunks::SetAllowMigrations;
use crate::messages::migration::JoinMigrations;
use crate::messages::placement::FlushRoutingTable;
use crate::messages::{Flag, Message};
use crate::remote::Target;
use document::{Document, Result, Value, codes, err};
use std::time::Duration;

/// How long a migration that has begun to commit may take to end.
const STOP_WAIT: Duration = Duration::from_secs(60);

impl Ddl {
    /// Forbids migrations of the incarnation `uuid` of `ns` and waits until none is under way on any shard. One that is not
    /// in the catalog has none.
    ///
    /// # Errors
    /// ExceededTimeLimit (262) when a migration does not end.
    pub(super) async fn freeze(&self, ns: &str, uuid: Option<[u8; 16]>) -> Result<()> {
        if self.set_migrations(ns, uuid, false).await? {
            self.stop_migrations(ns).await?;
        }
        Ok(())
    }

    /// Takes [`Ddl::freeze`] back.
    pub(super) async fn thaw(&self, ns: &str, uuid: Option<[u8; 16]>) -> Result<()> {
        self.set_migrations(ns, uuid, true).await.map(drop)
    }

    /// Sets the flag; false when this incarnation is not in the catalog.
    async fn set_migrations(&self, ns: &str, uuid: Option<[u8; 16]>, allow: bool) -> Result<bool> {
        let Some(uuid) = uuid else { return Ok(false) };
        let set = SetAllowMigrations { ns: ns.to_string(), allow, uuid: Some(uuid), permit: Flag(false) };
        match self.config(set.to_document()).await {
            Ok(_) => Ok(true),
            Err(e)
                if matches!(
                    e.code,
                    codes::NAMESPACE_NOT_SHARDED | codes::CONFLICTING_OPERATION_IN_PROGRESS
                ) =>
            {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    /// Waits until no migration of `ns` is under way on any shard; those that have not begun to commit give way.
    pub(super) async fn stop_migrations(&self, ns: &str) -> Result<()> {
        let own = self.shard()?;
        let shards = self.all_shards().await?;
        let stops = shards.iter().map(|shard| self.stop_on(shard, *shard == own, ns));
        let stopped = tokio::time::timeout(STOP_WAIT, futures::future::join_all(stops)).await;
        let stopped = stopped
            .map_err(|_| err!(EXCEEDED_TIME_LIMIT, "a migration of {ns} did not end within {STOP_WAIT:?}"))?;
        stopped.into_iter().collect()
    }

    async fn stop_on(&self, shard: &str, own: bool, ns: &str) -> Result<()> {
        if own {
            self.role.migrations.stop(ns).await;
            return Ok(());
        }
        let stop = JoinMigrations { stop: Some(ns.to_string()) };
        self.role.remote.admin(Target::Shard(shard), stop.to_document()).await.map(drop)
    }

    /// The UUID under which the catalog has the collection now.
    pub(super) async fn tracked_uuid(&self, ns: &str) -> Result<Option<[u8; 16]>> {
        Ok(self.tracked(ns).await?.and_then(|d: Document| d.get("uuid").and_then(Value::as_uuid)))
    }

    /// Has every shard look at the placement of a collection. Best effort: a shard that does not hear of it asks when it
    /// meets the new version.
    pub(super) async fn refresh_everywhere(&self, ns: &str) -> Result<()> {
        let refresh = FlushRoutingTable::anew(ns).to_document();
        let own = self.shard()?;
        let shards = self.all_shards().await?;
        let asks = shards.iter().map(|shard| async {
            match *shard == own {
                true => drop(self.role.refresh_collection(ns).await),
                false => drop(self.role.remote.admin(Target::Shard(shard), refresh.clone()).await),
            }
        });
        futures::future::join_all(asks).await;
        Ok(())
    }
}
