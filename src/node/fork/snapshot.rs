//! Snapshots by name: taken, listed, dropped, and gone back to.
//!
//! The database `$snapshot:NAME:d` holds the copies of database `d`, and `$snapshot:NAME:` one empty collection, which says that there is
//! such a snapshot even where it has nothing else.

use super::part::Part;
use super::{COLLECTIONS_MAX, Copy, Plan, collections_of, concluded, origin_of, plain};
use crate::{Node, Operation};
use document::{Document, Result, bail, doc, err};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::SeqCst;

const PREFIX: &str = "$snapshot:";
/// The collection that says that there is a snapshot.
const MARKER: &str = "taken";
const NAME_LENGTH_MAX: usize = 64;

/// Whether a snapshot may have this name.
///
/// # Errors
/// BadValue (2).
pub fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.chars().all(fits) {
        bail!(
            BAD_VALUE,
            "The name of a snapshot has 1 to {NAME_LENGTH_MAX} letters, digits, '_' or '-', found '{name}'"
        );
    }
    Ok(())
}

/// The database that holds a snapshot's copies of `db`; of the marker, with an empty name.
fn database(name: &str, db: &str) -> String {
    kept(name, db)
}
/// Where a snapshot keeps a collection.
pub(super) fn kept(name: &str, ns: &str) -> String {
    format!("{PREFIX}{name}:{ns}")
}
fn marker(name: &str) -> String {
    format!("{}.{MARKER}", database(name, ""))
}

/// The collections that there are, each with its UUID.
fn data(node: &Node, part: Part) -> Vec<(String, [u8; 16])> {
    let mut found = Vec::new();
    for slot in node.namespaces.all().iter().filter(|slot| part.covers(&slot.ns)) {
        if let Some(c) = &slot.read_unchecked().collection {
            found.push((slot.ns.clone(), c.uuid()));
        }
    }
    found
}

/// The collections of a snapshot: each with its own namespace, that of what it is a copy of, and that one's UUID.
struct Held {
    ns: String,
    original: String,
    uuid: [u8; 16],
}

/// # Errors
/// NamespaceNotFound (26).
fn held(node: &Node, name: &str) -> Result<Vec<Held>> {
    if collections_of(node, &database(name, "")).is_empty() {
        return Err(err!(NAMESPACE_NOT_FOUND, "snapshot {name} not found"));
    }
    let prefix = database(name, "");
    let mut found = Vec::new();
    for slot in node.namespaces.all().iter().filter(|slot| slot.ns.starts_with(&prefix)) {
        let state = slot.read_unchecked();
        if let Some((c, uuid)) = state.collection.as_ref().and_then(|c| Some((c, origin_of(c)?))) {
            let original = c.ns()[prefix.len()..].to_string();
            found.push(Held { ns: slot.ns.clone(), original, uuid });
        }
    }
    Ok(found)
}

/// All namespaces of a snapshot, the marker's too; none where there is no such snapshot.
fn namespaces(node: &Node, name: &str) -> Vec<String> {
    let prefix = database(name, "");
    let slots = node.namespaces.all();
    let own = slots.iter().filter(|s| s.ns.starts_with(&prefix) && s.read_unchecked().collection.is_some());
    own.map(|slot| slot.ns.clone()).collect()
}

/// Keeps every database as it is now under a name; one of the same name goes. Returns how many collections it holds.
///
/// # Errors
/// BadValue (2) for the name, OperationFailed (96) for too many collections.
pub async fn take_snapshot(node: &Node, op: &Operation, name: &str) -> Result<usize> {
    take_part(node, op, name, Part::Whole, node.new_uuid()).await.map(|taken| taken.len())
}

/// Keeps what belongs to `part` under a name; `id` tells the snapshot from others of the name. Returns the namespaces that it holds.
///
/// # Errors
/// As [`take_snapshot`].
pub async fn take_part(
    node: &Node,
    op: &Operation,
    name: &str,
    part: Part,
    id: [u8; 16],
) -> Result<Vec<String>> {
    check_name(name)?;
    node.check_write_concern(op)?;
    // What is prepared is in no tree yet, and belongs to a moment before this one.
    op.interruptible(node.wait_prepared_ended()).await?;
    let plan = || {
        let copy = |(ns, uuid): (String, [u8; 16])| Copy {
            to: kept(name, &ns),
            uuid: node.new_uuid(),
            origin: Some(uuid),
            from: ns,
        };
        let copies: Vec<Copy> = data(node, part).into_iter().map(copy).collect();
        if copies.len() > COLLECTIONS_MAX {
            bail!(
                OPERATION_FAILED,
                "A snapshot holds up to {COLLECTIONS_MAX} collections, found {}",
                copies.len()
            );
        }
        let plan = Plan { drops: namespaces(node, name), copies, ..Plan::default() }.checked(node)?;
        let mut names = plan.namespaces();
        names.insert(marker(name));
        Ok((names, plan))
    };
    let taken = node.write_alone(op, plan, |unit, plan| {
        let gone = plan.run_with(unit, |unit| {
            if let Some(mut target) = unit.on(&marker(name)) {
                target.create_collection(plain(&marker(name), id), true);
            }
            Ok(())
        })?;
        Ok((plan.copies.into_iter().map(|copy| copy.from).collect(), gone))
    });
    let ((copied, gone), _) = taken.await?;
    drop(gone);
    Ok(copied)
}

/// Whether there is a snapshot of this name and `id`.
pub fn holds_snapshot(node: &Node, name: &str, id: [u8; 16]) -> bool {
    let marker = node.namespaces.existing(&marker(name));
    marker.is_some_and(|slot| slot.holds(id))
}

/// Drops a snapshot, or what was kept under a name without being one yet.
///
/// # Errors
/// NamespaceNotFound (26).
pub async fn drop_snapshot(node: &Node, op: &Operation, name: &str) -> Result<()> {
    check_name(name)?;
    node.check_write_concern(op)?;
    let plan = || {
        let drops = namespaces(node, name);
        if drops.is_empty() {
            bail!(NAMESPACE_NOT_FOUND, "snapshot {name} not found");
        }
        let plan = Plan { drops, ..Plan::default() }.checked(node)?;
        Ok((plan.namespaces(), plan))
    };
    let (gone, _) = node.write_alone(op, plan, |unit, plan| plan.run(unit)).await?;
    drop(gone);
    Ok(())
}

/// The snapshots: `{name, collections}` by name.
pub fn list_snapshots(node: &Node) -> Vec<Document> {
    let mut counts: BTreeMap<String, i32> = BTreeMap::new();
    for slot in node.namespaces.all() {
        let named = slot.ns.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':'));
        let Some((name, rest)) = named.filter(|_| slot.read_unchecked().collection.is_some()) else {
            continue;
        };
        // The marker is not counted.
        *counts.entry(name.to_string()).or_default() += i32::from(!rest.starts_with('.'));
    }
    counts.iter().map(|(name, n)| doc! { "name": name.as_str(), "collections": *n }).collect()
}

/// Puts every database back to what a snapshot holds. Returns how many collections there are then.
///
/// # Errors
/// NamespaceNotFound (26); interrupts while a prepared transaction is waited for.
pub async fn restore(node: &Node, op: &Operation, name: &str) -> Result<usize> {
    restore_part(node, op, Some(name), Part::Whole, None).await
}

/// Puts back what belongs to `part`: to what a snapshot holds or, without one, to nothing. Change streams of this node report the databases
/// `reported`; without them all.
///
/// # Errors
/// As [`restore`].
pub async fn restore_part(
    node: &Node,
    op: &Operation,
    name: Option<&str>,
    part: Part,
    reported: Option<BTreeSet<String>>,
) -> Result<usize> {
    name.map_or(Ok(()), check_name)?;
    node.check_write_concern(op)?;
    check_restore(node, name, part)?;
    end_transactions(node, op).await?;
    let plan = || {
        let plan = Plan { reported, ..plan_restore(node, name, part)? };
        Ok((plan.namespaces(), plan))
    };
    let restored = node.write_alone(op, plan, |unit, plan| {
        let gone = plan.run(unit)?;
        // Under the gate: whoever commits afterwards sees it.
        node.restored_ts.store(node.cluster_time().as_u64(), SeqCst);
        Ok((plan.copies.len(), gone))
    });
    let ((copied, gone), _) = restored.await?;
    concluded(node, gone, |ns| part.covers(ns));
    // Those that began meanwhile are told at once what they would be told at their commit.
    node.abort_transactions_of(|_| true);
    Ok(copied)
}

/// Whether [`restore_part`] can do this, if nothing changes meanwhile.
///
/// # Errors
/// NamespaceNotFound (26), OperationFailed (96) for too much.
pub fn check_restore(node: &Node, name: Option<&str>, part: Part) -> Result<()> {
    plan_restore(node, name, part).map(drop)
}

fn plan_restore(node: &Node, name: Option<&str>, part: Part) -> Result<Plan> {
    let held = name.map_or(Ok(Vec::new()), |name| held(node, name))?;
    let back: BTreeSet<&str> = held.iter().map(|h| h.original.as_str()).collect();
    let since = data(node, part).into_iter().map(|(ns, _)| ns);
    let drops = since.filter(|ns| !back.contains(ns.as_str())).collect();
    let copy = |h: Held| Copy { from: h.ns, to: h.original, uuid: h.uuid, origin: None };
    let plan = Plan { drops, copies: held.into_iter().map(copy).collect(), ..Plan::default() };
    plan.checked(node)
}

/// Aborts all transactions and waits until they have ended, and those that are prepared.
async fn end_transactions(node: &Node, op: &Operation) -> Result<()> {
    node.abort_transactions_of(|_| true);
    for t in node.transactions.open() {
        op.interruptible(t.wait_ended()).await?;
    }
    Ok(())
}
