//! Copies of whole databases that cost next to nothing, and a node put back to how it was.
//!
//! ```text
//! tesseraFork      d.c                     ──▶  e.c                     a database under another name
//! tesseraSnapshot  d.c                     ──▶  $snapshot:NAME:d.c      every database, under names that no client can say
//! tesseraRestore   $snapshot:NAME:d.c      ──▶  d.c                     and back; what was made since goes
//! ```
//!
//! # The step
//!
//! A copy of a collection shares every node of its trees with the original ([`storage::Collection::fork`]): making it costs as much for a
//! million documents as for one, and the first write to either copies the path that it changes. In the log it is
//!
//! ```text
//! { op: "c", ui: UUID of the copy, o: { tesseraFork: "d.c", to: "e.c", origin?: UUID } }          DO NOT CHANGE: it is replayed
//! ```
//!
//! after a `drop` of what has the name `to`. All entries of a command are one `applyOps`: after a crash all of it has happened or nothing.
//! A replay makes the same copies at the same place of the history, and so does a secondary, of its own collections. Snapshots are
//! collections like others to checkpoints, initial syncs and rollbacks.
//!
//! `origin` is the UUID of what was copied, kept among the options of a snapshot's collections ([`ORIGIN`]): restoring gives it back, so
//! that whoever knows a collection by its UUID finds it.
//!
//! # The moment
//!
//! A command runs as one commit over all namespaces while no other commit is under way ([`Node::write_alone`]). Every write that was
//! acknowledged before is in a snapshot, none that comes after is, and no reader sees a part of a restored state; only views follow a
//! moment later.
//!
//! # What a restore ends
//!
//! - Transactions are aborted before it and prepared ones waited for. One that has read what was before the restore and was not
//!   registered yet is refused its commit (`Node::restored_ts`): its locks name records of a state that is gone.
//! - Cursors of the namespaces concerned are killed, since an idle one goes on by key wherever its collection has its old UUID.
//! - A build of an index that is under way goes on: it is published by the difference of two trees, whichever they are.
//! - The clock, the log, the sessions' histories and the databases `admin`, `config` and `local` stay: a write that was done before a
//!   restore is not done again when its session sends it again.
//!
//! # On a cluster
//!
//! Each shard, and the config server for its catalog, does the same for its [`Part`], while the cluster stands still: `sharding/config/whole` has the
//! order of things.
//!
//! # Where it can get stuck
//!
//! Only before the commit: behind a prepared transaction whose coordinator does not decide, and a copy behind any transaction that uses
//! what it replaces. It then ends with its deadline, a copy after a minute, and has changed nothing but for the transactions that it aborted.

mod part;
mod snapshot;
#[cfg(test)]
mod tests;

pub use part::{CATALOG, ForkOrder, Part, catalog_copy, fork_part, has_collections, replace_collections};
pub use snapshot::{
    check_name, check_restore, drop_snapshot, holds_snapshot, list_snapshots, restore, restore_part,
    take_part, take_snapshot,
};

use crate::batch::ENTRY_BYTES_MAX;
use crate::write::commit::WideUnit;
use crate::write::unit::Origin;
use crate::{Node, Operation};
use document::{DocBuf, Document, Result, Value, bail, doc};
use std::collections::BTreeSet;
use storage::recovery::ORIGIN;
use storage::{Collection, CollectionMeta, CollectionView, split_namespace};

/// Begins the names of databases that no client can name: `$` is refused in them.
const HIDDEN: char = '$';
/// One entry of the log must hold all that a command does.
const COLLECTIONS_MAX: usize = 20_000;
/// What an operation of the entry takes beside names, at most.
const OPERATION_BYTES: usize = 256;

/// Whether a database holds a snapshot and is shown to nobody.
pub fn is_hidden(db: &str) -> bool {
    db.starts_with(HIDDEN)
}

/// A copy of a collection.
struct Copy {
    from: String,
    to: String,
    uuid: [u8; 16],
    /// The UUID to go back to.
    origin: Option<[u8; 16]>,
}

/// What a command does in its commit.
#[derive(Default)]
struct Plan {
    drops: Vec<String>,
    /// None is of what another makes.
    copies: Vec<Copy>,
    /// Views of the first database to define in the second.
    views: Option<(String, String)>,
    /// The databases whose changes the streams of this node report; `None`: all. A cluster reports those of a database on its primary shard.
    reported: Option<BTreeSet<String>>,
}

impl Plan {
    fn namespaces(&self) -> BTreeSet<String> {
        let copied = self.copies.iter().flat_map(|copy| [&copy.from, &copy.to]);
        let views = self.views.iter().flat_map(|(from, to)| [definitions(from), definitions(to)]);
        self.drops.iter().chain(copied).cloned().chain(views).collect()
    }

    /// The namespaces that change.
    fn targets(&self) -> BTreeSet<String> {
        let made = self.copies.iter().map(|copy| &copy.to);
        let views = self.views.iter().map(|(_, to)| definitions(to));
        self.drops.iter().chain(made).cloned().chain(views).collect()
    }

    fn is_quiet(&self, ns: &str) -> bool {
        let db = split_namespace(ns).0;
        is_hidden(ns) || self.reported.as_ref().is_some_and(|reported| !reported.contains(db))
    }

    /// The plan, if it can be carried out as things are: halfway there is no way back. Asked under the gate or, ahead of time, while nothing
    /// changes.
    fn checked(self, node: &Node) -> Result<Plan> {
        let there = |ns: &str| {
            let slot = node.namespaces.existing(ns);
            slot.is_some_and(|slot| slot.read_unchecked().collection.is_some())
        };
        if let Some(missing) = self.copies.iter().find(|copy| !there(&copy.from)) {
            bail!(NAMESPACE_NOT_FOUND, "{}, which is to be copied, not found", missing.from);
        }
        self.check_length(node)?;
        Ok(self)
    }

    /// The log cannot be read past an entry that is too large.
    fn check_length(&self, node: &Node) -> Result<()> {
        let dropped = self.drops.iter().map(|ns| ns.len() + OPERATION_BYTES);
        // One for the drop of what has the name.
        let copied = self.copies.iter().map(|copy| copy.from.len() + 2 * (copy.to.len() + OPERATION_BYTES));
        let mut bytes: usize = dropped.chain(copied).sum();
        if let Some((from, to)) = &self.views
            && let Some(defined) = &node.namespaces.slot(&definitions(from)).read_unchecked().collection
        {
            bytes += defined.data_bytes() as usize + defined.len() * (to.len() + OPERATION_BYTES);
        }
        if bytes > ENTRY_BYTES_MAX as usize {
            bail!(
                OPERATION_FAILED,
                "What is to be copied takes {bytes} bytes in the log, more than an entry has"
            );
        }
        Ok(())
    }

    /// Carries the plan out; returns the collections that gave way, to be freed without the latches.
    fn run(&self, unit: &mut WideUnit<'_>) -> Result<Vec<Collection>> {
        self.run_with(unit, |_| Ok(()))
    }
    /// As [`Plan::run`], with more that happens in the same entry.
    fn run_with(
        &self,
        unit: &mut WideUnit<'_>,
        more: impl FnOnce(&mut WideUnit<'_>) -> Result<()>,
    ) -> Result<Vec<Collection>> {
        let mut gone = Vec::new();
        for ns in &self.drops {
            gone.extend(give_way(unit, ns, self.is_quiet(ns)));
        }
        for copy in &self.copies {
            let quiet = self.is_quiet(&copy.to);
            gone.extend(give_way(unit, &copy.to, quiet));
            copy.make(unit, quiet);
        }
        if let Some((from, to)) = &self.views {
            define_views(unit, from, to)?;
        }
        more(unit)?;
        unit.group();
        Ok(gone)
    }
}

impl Copy {
    fn make(&self, unit: &mut WideUnit<'_>, quiet: bool) {
        let Some((source, target)) = unit.pair(&self.from, &self.to) else { return };
        let Some(original) = &source.collection else { return };
        let mut copy = original.fork(&self.to, self.uuid);
        storage::recovery::note_origin(&mut copy, self.origin);
        target.install(copy);
        let mut o = doc! { "tesseraFork": self.from.as_str(), "to": self.to.as_str() };
        if let Some(origin) = self.origin {
            o.push("origin", Value::uuid(origin));
        }
        if let Some(mut target) = unit.on(&self.to) {
            target.command(Some(self.uuid), o, None, quiet);
        }
    }
}

/// Drops what has the name.
fn give_way(unit: &mut WideUnit<'_>, ns: &str, quiet: bool) -> Option<Collection> {
    let mut target = unit.on(ns)?;
    let gone = target.state.uninstall()?;
    let o = doc! { "drop": split_namespace(ns).1 };
    target.command(Some(gone.uuid()), o, Some(doc! { "numRecords": gone.len() as i64 }), quiet);
    Some(gone)
}

/// Where the views of a database are defined.
fn definitions(db: &str) -> String {
    format!("{db}.system.views")
}

/// Defines the views of one database in another: their `_id`s name the database.
fn define_views(unit: &mut WideUnit<'_>, from: &str, to: &str) -> Result<()> {
    let defined: Vec<Document> = match unit.on(&definitions(from)).as_ref().and_then(|u| u.collection()) {
        Some(c) => {
            let mut records = CollectionView::records(c);
            let first = records.first();
            std::iter::successors(first, |_| records.next()).map(|(_, d)| d.to_document()).collect()
        }
        None => return Ok(()),
    };
    let Some(mut target) = unit.on(&definitions(to)) else { return Ok(()) };
    target.ensure_exists();
    for mut view in defined {
        let name = view.get_str("_id").map(|id| split_namespace(id).1.to_string()).unwrap_or_default();
        view.insert("_id", format!("{to}.{name}"));
        let bytes: DocBuf = view.to_doc_buf();
        target.insert(bytes.doc(), Origin::default())?;
    }
    Ok(())
}

/// Whether one database may be a copy of the other.
///
/// # Errors
/// InvalidNamespace (73).
pub fn check_databases(from: &str, to: &str) -> Result<()> {
    for db in [from, to] {
        crate::request::check_database_name(db)?;
        if document::is_internal_database(db) {
            bail!(INVALID_NAMESPACE, "The database {db} cannot be copied, nor be a copy");
        }
    }
    if from == to {
        bail!(INVALID_NAMESPACE, "A database cannot be a copy of itself");
    }
    Ok(())
}

/// Makes `to` a copy of the database `from`; returns how many collections it has. What `to` holds goes where `replace` says so.
///
/// # Errors
/// InvalidNamespace (73), NamespaceNotFound (26), NamespaceExists (48), LockTimeout (24) where a transaction uses what `to`
/// holds, OperationFailed (96) for too much.
pub async fn fork_database(
    node: &Node,
    op: &Operation,
    from: &str,
    to: &str,
    replace: bool,
) -> Result<usize> {
    check_databases(from, to)?;
    node.check_write_concern(op)?;
    loop {
        // Transactions that use what changes come first, as before any change of the catalog.
        let targets = plan_fork(node, from, to, replace)?.targets();
        let mut held = Vec::with_capacity(targets.len());
        for ns in &targets {
            held.push(node.lock_for_change(op, &node.namespaces.slot(ns)).await?);
        }
        let plan = || {
            let plan = plan_fork(node, from, to, replace)?;
            match plan.targets() == targets {
                true => Ok((plan.namespaces(), Some(plan))),
                // Something was made or dropped before the locks were taken.
                false => Ok((BTreeSet::new(), None)),
            }
        };
        let run = |unit: &mut WideUnit<'_>, plan: Option<Plan>| {
            plan.map(|plan| Ok((plan.copies.len(), plan.run(unit)?))).transpose()
        };
        if let (Some((copied, gone)), _) = node.write_alone(op, plan, run).await? {
            concluded(node, gone, |ns| split_namespace(ns).0 == to);
            return Ok(copied);
        }
    }
}

fn plan_fork(node: &Node, from: &str, to: &str, replace: bool) -> Result<Plan> {
    if !has_collections(node, from) {
        bail!(NAMESPACE_NOT_FOUND, "database {from} not found");
    }
    if has_collections(node, to) && !replace {
        bail!(NAMESPACE_EXISTS, "database {to} exists already");
    }
    if let Some(other) = node.namespaces.differing_in_case(to) {
        bail!(
            DATABASE_DIFFER_CASE,
            "db already exists with different case already have: [{other}] trying to create [{to}]"
        );
    }
    plan_copy(node, from, to, true, |_| Some(node.new_uuid()))
}

/// Makes `to` a copy of `from`: of the collections that get a UUID, and of the views if they are wanted.
fn plan_copy(
    node: &Node,
    from: &str,
    to: &str,
    with_views: bool,
    uuid_of: impl Fn(&str) -> Option<[u8; 16]>,
) -> Result<Plan> {
    let sources = collections_of(node, from);
    if sources.len() > COLLECTIONS_MAX {
        bail!(OPERATION_FAILED, "A copy has up to {COLLECTIONS_MAX} collections, found {}", sources.len());
    }
    // Of the profiler's lines nobody wants a copy; views are defined anew.
    let views = with_views && sources.contains(&definitions(from));
    let copy = |ns: &String| {
        let name = split_namespace(ns).1;
        Some(Copy { from: ns.clone(), to: format!("{to}.{name}"), uuid: uuid_of(name)?, origin: None })
    };
    let own = |ns: &&String| !matches!(split_namespace(ns).1, "system.profile" | "system.views");
    let plan = Plan {
        copies: sources.iter().filter(own).filter_map(copy).collect(),
        drops: collections_of(node, to),
        views: views.then(|| (from.to_string(), to.to_string())),
        reported: None,
    };
    plan.checked(node)
}

/// The namespaces of a database that hold a collection.
fn collections_of(node: &Node, db: &str) -> Vec<String> {
    let slots = node.namespaces.of_database(db);
    let filled = slots.iter().filter(|slot| slot.read_unchecked().collection.is_some());
    filled.map(|slot| slot.ns.clone()).collect()
}

/// What follows a commit of this room: views as the definitions now say, no cursor over what was replaced, and the trees freed.
fn concluded(node: &Node, gone: Vec<Collection>, concerns: impl Fn(&str) -> bool) {
    let databases: BTreeSet<String> = node
        .namespaces
        .all()
        .iter()
        .filter(|slot| concerns(&slot.ns))
        .map(|slot| slot.database.name.clone())
        .collect();
    {
        let _gate = node.gate.read();
        databases.iter().for_each(|db| node.reload_views(db));
    }
    node.cursors.kill_where(|ns, _| concerns(ns));
    for collection in gone {
        let uuid = collection.uuid();
        let now =
            node.namespaces.slot(collection.ns()).read_unchecked().collection.as_ref().map(|c| c.uuid());
        // What was put back under its old UUID keeps its filters.
        if now != Some(uuid) {
            node.forget_dropped(uuid, collection.ns());
        }
    }
}

/// The marker of a snapshot, and what else a snapshot keeps, have no options of their own.
fn plain(ns: &str, uuid: [u8; 16]) -> CollectionMeta {
    CollectionMeta::new(ns, uuid)
}

/// The UUID that a snapshot's collection goes back to.
fn origin_of(collection: &Collection) -> Option<[u8; 16]> {
    collection.meta().options.get(ORIGIN).and_then(Value::as_uuid)
}
