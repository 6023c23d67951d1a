//! Making a capped copy of a collection, and turning a collection into one.
//!
//! The copy is made of a snapshot, oldest document first, so that what does not fit falls out at the old end. The copy
//! takes the collection's name only if, under the latches of the rename, the collection is still what the snapshot was:
//! a document written meanwhile would be lost. Otherwise the copy is made anew.

use super::collections::{create_collection, drop_collection, drop_if};
use super::rename::{Versioned, rename_checked};
use crate::namespace::Slot;
use crate::request::NAMESPACE_BYTES_MAX;
use crate::write::unit::Origin;
use crate::{Node, Operation};
use document::{Doc, Document, Result, ValueRef, bail, codes, doc, err};
use query::timeseries::BUCKETS_PREFIX;
use std::ops::Bound;
use std::sync::Arc;
use storage::{Collection, CollectionSnapshot, CollectionView, split_namespace};

/// How often a copy is made anew because its source has changed.
const COPIES_MAX: usize = 20;
/// By how much the real server's name of the copy is longer than that of its source.
const TEMPORARY_NAME_BYTES: usize = 25;
/// Documents copied in one commit.
const SLICE: usize = 200;

/// Copies `from` into the new capped collection `to`.
///
/// # Errors
/// NamespaceNotFound (26), NamespaceExists (48), InvalidOptions (72) for a size that is none, CommandNotSupportedOnView (166),
/// IllegalOperation (20) for buckets of a time series.
pub async fn clone_as(node: &Node, op: &Operation, from: &str, to: &str, size: i64) -> Result<()> {
    if size < 1 {
        bail!(INVALID_OPTIONS, "Capped collection size must be greater than zero");
    }
    for ns in [from, to] {
        if split_namespace(ns).1.starts_with(BUCKETS_PREFIX) {
            bail!(ILLEGAL_OPERATION, "the buckets of a time series cannot be cloned, nor be a clone: {ns}");
        }
    }
    let snapshot = snapshot_of(node, op, from).await?;
    let target = node.namespaces.slot(to);
    if target.read_unchecked().view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "cloneCollectionAsCapped not supported for views: {to}");
    }
    if target.read_unchecked().collection.is_some() {
        bail!(
            NAMESPACE_EXISTS,
            "cloneCollectionAsCapped failed - destination collection {to} already exists"
        );
    }
    create_collection(node, op, to, doc! { "capped": true, "size": size }, None).await?;
    copy(node, op, op, &snapshot, to).await
}

/// The options of a capped collection in the place of another.
fn options(before: &CollectionSnapshot, size: i64) -> Document {
    let mut options = doc! { "capped": true, "size": size };
    if let Some(collation) = before.meta().options.get("collation") {
        options.push("collation", collation.clone());
    }
    options
}

/// The largest size of a capped collection: 1 PiB.
pub(super) const CAPPED_BYTES_MAX: i64 = 1 << 50;

/// The `size` of the commands that make a collection capped. They are older than typed commands: unknown fields are allowed, and a
/// size that is no number is an invalid option.
///
/// # Errors
/// InvalidOptions (72), BadValue (2) for a size that is too large.
pub fn size_of(body: Doc<'_>) -> Result<i64> {
    let size = body.get("size").unwrap_or(ValueRef::Null);
    let Some(size) = crate::shape::to_long(size) else {
        bail!(INVALID_OPTIONS, "invalid size field: a number is needed, found {}", size.type_name())
    };
    if size > CAPPED_BYTES_MAX {
        bail!(
            BAD_VALUE,
            "Capped collection maximum size {size} exceeds the limit of {CAPPED_BYTES_MAX} bytes"
        );
    }
    Ok(size)
}

/// Replaces a collection by a capped one with the same documents, which has the UUID given. Of an attempt that was cut off, the copy
/// with this UUID goes first.
pub async fn convert(node: &Node, op: &Operation, ns: &str, size: i64, uuid: Option<[u8; 16]>) -> Result<()> {
    let (db, name) = split_namespace(ns);
    if size < 1 {
        bail!(INVALID_OPTIONS, "Capped collection size must be greater than zero");
    }
    check_convertible(ns)?;
    // The versions of a routed request speak of the collection, not of its copy.
    let own = Operation::internal();
    // Under its own name it is no copy any more: a request that was sent twice has just converted it.
    let left = |slot: &Arc<Slot>| {
        let found = slot.read_unchecked().collection.as_ref().map(Collection::uuid);
        uuid.is_some() && found == uuid && slot.ns != ns
    };
    for slot in node.namespaces.of_database(db).iter().filter(|slot| left(slot)) {
        drop_collection(node, &own, &slot.ns, false).await?;
    }
    for _ in 0..COPIES_MAX {
        let snapshot = snapshot_of(node, op, ns).await?;
        // No copy goes on with what another has left, which may be from long ago: neither name nor UUID were there before.
        let temporary = format!("{db}.tmp{:08x}.convertToCapped.{name}", runtime::random::<u32>());
        if node.namespaces.slot(&temporary).read_unchecked().collection.is_some() {
            continue;
        }
        let of_copy = uuid.unwrap_or_else(|| node.new_uuid());
        create_collection(node, &own, &temporary, options(&snapshot, size), Some(of_copy)).await?;
        let Err(error) = put_copy(node, op, &own, &snapshot, &temporary, ns).await else { return Ok(()) };
        drop_if(node, &own, &temporary, false, |found| found == Some(of_copy)).await?;
        if error.code != codes::WRITE_CONFLICT {
            return Err(error);
        }
    }
    bail!(CONFLICTING_OPERATION_IN_PROGRESS, "the collection {ns} kept changing while it was copied")
}

/// Fills the copy and puts it in the place of the collection, which must not have changed since `snapshot`.
async fn put_copy(
    node: &Node,
    op: &Operation,
    own: &Operation,
    snapshot: &CollectionSnapshot,
    temporary: &str,
    ns: &str,
) -> Result<()> {
    copy(node, op, own, snapshot, temporary).await?;
    let unchanged = |target: Option<&Collection>| {
        let now = target
            .map(|c| c.snapshot())
            .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "source collection {ns} does not exist"))?;
        let mut changes = storage::tree::difference(
            snapshot.record_tree(),
            now.record_tree(),
            Bound::Unbounded,
            Bound::Unbounded,
        );
        match changes.next() {
            None => Ok(()),
            Some(_) => bail!(WRITE_CONFLICT, "the collection changed while it was copied"),
        }
    };
    rename_checked(node, op, (temporary, ns), true, Versioned::Target, unchanged).await
}

/// Refuses what the server itself keeps as it is, and a name that leaves no room for that of the copy.
pub fn check_convertible(ns: &str) -> Result<()> {
    let name = split_namespace(ns).1;
    if name == "system.views" {
        bail!(BAD_VALUE, "the definitions of views cannot be kept in a capped collection: {ns}");
    }
    if name.starts_with(BUCKETS_PREFIX) {
        bail!(ILLEGAL_OPERATION, "the buckets of a time series cannot be kept in a capped collection: {ns}");
    }
    if ns.len() + TEMPORARY_NAME_BYTES > NAMESPACE_BYTES_MAX {
        bail!(INVALID_NAMESPACE, "the name is too long for a copy to be named after it: {ns}");
    }
    Ok(())
}

/// Removes every document of a capped collection.
pub async fn empty(node: &Node, op: &Operation, ns: &str) -> Result<()> {
    let slot = node.namespaces.slot(ns);
    if !slot.read(op, |s| Ok(s.capped.is_some())).await? {
        bail!(ILLEGAL_OPERATION, "Cannot truncate a non-capped collection: {ns}");
    }
    loop {
        let (left, _) = node
            .write(op, &slot, |unit| {
                for _ in 0..SLICE {
                    let oldest = unit.existing()?.records().first().map(|(record, _)| record);
                    match oldest {
                        Some(record) => unit.delete(record, Origin::default())?,
                        None => return Ok(false),
                    };
                }
                Ok(true)
            })
            .await?;
        if !left {
            return Ok(());
        }
        op.check_interrupt()?;
        tokio::task::yield_now().await;
    }
}

async fn snapshot_of(node: &Node, op: &Operation, ns: &str) -> Result<CollectionSnapshot> {
    node.namespaces
        .slot(ns)
        .read(op, |s| {
            if s.view.is_some() {
                bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "cannot copy the view {ns}");
            }
            s.collection
                .as_ref()
                .map(|c| c.snapshot())
                .ok_or_else(|| err!(NAMESPACE_NOT_FOUND, "source collection {ns} does not exist"))
        })
        .await
}

/// Copies for `op`, as writes of `writer`.
async fn copy(
    node: &Node,
    op: &Operation,
    writer: &Operation,
    from: &CollectionSnapshot,
    to: &str,
) -> Result<()> {
    let target = node.namespaces.slot(to);
    let mut after = None;
    loop {
        op.check_interrupt()?;
        let (last, _) = node
            .write(writer, &target, |unit| {
                let mut records = from.records();
                let mut next = match after {
                    None => records.first(),
                    Some(record) => records.seek(record + 1),
                };
                let mut last = None;
                for _ in 0..SLICE {
                    let Some((record, document)) = next else { break };
                    unit.check_room()?;
                    unit.insert(document, Origin::default())?;
                    unit.trim_capped()?;
                    last = Some(record);
                    next = records.next();
                }
                Ok(last)
            })
            .await?;
        if last.is_none() {
            return Ok(());
        }
        after = last;
        tokio::task::yield_now().await;
    }
}
