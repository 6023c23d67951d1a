//! Of a cluster: what each node keeps and puts back, and the copy of a database whose collections exist on several shards.

use super::snapshot::kept;
use super::{Copy, Plan, collections_of, concluded, is_hidden, plan_copy};
use crate::user_writes::is_users;
use crate::write::commit::WideUnit;
use crate::{Node, Operation};
use document::Result;
use std::collections::{BTreeMap, BTreeSet};
use storage::split_namespace;

/// The collections of a config server that say where data belongs.
pub const CATALOG: &[&str] = &["config.databases", "config.collections", "config.chunks", "config.tags"];
/// What a shard has yet to delete belongs to its data.
const RANGE_DELETIONS: &str = "config.rangeDeletions";

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A node outside clusters.
    Whole,
    Shard,
    /// The catalog of a config server.
    Catalog,
}

impl Part {
    pub(super) fn covers(self, ns: &str) -> bool {
        match self {
            Part::Catalog => CATALOG.contains(&ns),
            Part::Shard if ns == RANGE_DELETIONS => true,
            _ => is_users(ns) && !is_hidden(split_namespace(ns).0),
        }
    }
}

/// Where the snapshot `name` keeps a collection of the catalog.
pub fn catalog_copy(name: &str, ns: &str) -> String {
    kept(name, ns)
}

/// Whether a database holds a collection here.
pub fn has_collections(node: &Node, db: &str) -> bool {
    !collections_of(node, db).is_empty()
}

/// Makes each second namespace a copy of the first, all in one commit. What has the name gives way, and leaves its UUID.
///
/// # Errors
/// OperationFailed (96) for too much.
pub async fn replace_collections(node: &Node, op: &Operation, pairs: &[(String, String)]) -> Result<()> {
    let plan = || {
        let uuid_of = |ns: &str| {
            let there = node.namespaces.existing(ns);
            there.and_then(|slot| slot.read_unchecked().collection.as_ref().map(|c| c.uuid()))
        };
        let copies = pairs.iter().map(|(from, to)| {
            let uuid = uuid_of(to).unwrap_or_else(|| node.new_uuid());
            Copy { from: from.clone(), to: to.clone(), uuid, origin: None }
        });
        let plan = Plan { copies: copies.collect(), ..Plan::default() }.checked(node)?;
        Ok((plan.namespaces(), plan))
    };
    let (gone, _) = node.write_alone(op, plan, |unit, plan| plan.run(unit)).await?;
    concluded(node, gone, |ns| pairs.iter().any(|(_, to)| to == ns));
    Ok(())
}

/// A shard's part in the copy of a database.
pub struct ForkOrder {
    pub from: String,
    pub to: String,
    /// The UUIDs of the copies, by names of collections: those of the catalog are the same on all shards.
    pub uuids: BTreeMap<String, [u8; 16]>,
    /// Only those, and none of the views: this shard is not the primary of the database.
    pub only_these: bool,
}

/// Makes `to` a copy of `from`, as far as this shard has any of it; what `to` holds gives way. Returns the names of its collections.
///
/// # Errors
/// As [`super::fork_database`].
pub async fn fork_part(node: &Node, op: &Operation, order: &ForkOrder) -> Result<Vec<String>> {
    let there = collections_of(node, &order.to);
    if !there.is_empty() {
        node.abort_transactions_of(|_| true);
    }
    let mut held = Vec::with_capacity(there.len());
    for ns in &there {
        held.push(node.lock_for_change(op, &node.namespaces.slot(ns)).await?);
    }
    let plan = || order.plan(node).map(|plan| (plan.namespaces(), plan));
    let run = |unit: &mut WideUnit<'_>, plan: Plan| {
        let gone = plan.run(unit)?;
        Ok((plan.copies.into_iter().map(|copy| copy.to).collect(), gone))
    };
    let ((copied, gone), _) = node.write_alone(op, plan, run).await?;
    concluded(node, gone, |ns| split_namespace(ns).0 == order.to);
    Ok(copied)
}

impl ForkOrder {
    /// Whether [`fork_part`] can do this, if nothing changes meanwhile.
    ///
    /// # Errors
    /// OperationFailed (96) for too much.
    pub fn check(&self, node: &Node) -> Result<()> {
        self.plan(node).map(drop)
    }

    fn plan(&self, node: &Node) -> Result<Plan> {
        let uuid_of = |name: &str| {
            let named = self.uuids.get(name).copied();
            named.or_else(|| (!self.only_these).then(|| node.new_uuid()))
        };
        let plan = plan_copy(node, &self.from, &self.to, !self.only_these, uuid_of)?;
        Ok(Plan { reported: self.only_these.then(BTreeSet::new), ..plan })
    }
}
