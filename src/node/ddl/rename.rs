//! renameCollection, within a database and across databases of the node.

use crate::request::NAMESPACE_BYTES_MAX;
use crate::write::commit::WideUnit;
use crate::{Node, Operation, Request};
use document::{Doc, Document, Result, Value, ValueRef, bail, doc};
use storage::Collection;
use storage::split_namespace;

/// Runs a `renameCollection` command (against `admin`).
pub async fn rename_collection(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let (from, to, target) = read(request.body)?;
    if [from, to].contains(&"local.oplog.rs") && node.is_replica_set() {
        bail!(ILLEGAL_OPERATION, "can't rename live oplog while replicating");
    }
    // A node of no set replicates nothing.
    if node.is_replica_set() {
        check_replicated(from, to)?;
    }
    check_allowed(from, to)?;
    node.check_uuid(request.body, &node.namespaces.slot(from))?;
    rename(node, op, from, to, target).await?;
    Ok(Document::new())
}

/// Source, target, and what becomes of a collection that has the target's name, of a `renameCollection` command.
///
/// # Errors
/// Those of [`DropTarget::parse`] and of [`check_name`].
pub fn read(body: Doc<'_>) -> Result<(&str, &str, DropTarget)> {
    let from = body.iter().next().and_then(|e| e.value().as_str()).unwrap_or_default();
    let to = body.get_str("to").unwrap_or_default();
    let target = DropTarget::parse(body)?;
    check_name(from)?;
    check_name(to)?;
    Ok((from, to, target))
}

/// Refuses what no collection may be renamed from or to, whatever is there.
///
/// # Errors
/// IllegalOperation (20).
pub fn check_names(from: &str, to: &str) -> Result<()> {
    check_replicated(from, to)?;
    check_allowed(from, to)
}

fn check_replicated(from: &str, to: &str) -> Result<()> {
    if from.starts_with("local.") != to.starts_with("local.") {
        bail!(
            ILLEGAL_OPERATION,
            "Cannot rename collections between a replicated and an unreplicated database"
        );
    }
    Ok(())
}

fn check_allowed(from: &str, to: &str) -> Result<()> {
    if to.strip_prefix("local.oplog.").is_some_and(|rest| !rest.is_empty()) {
        bail!(ILLEGAL_OPERATION, "can't rename a collection to an oplog");
    }
    if from == to {
        bail!(ILLEGAL_OPERATION, "Can't rename a collection to itself");
    }
    if split_namespace(from).1.starts_with("system.") || split_namespace(to).1.starts_with("system.") {
        bail!(ILLEGAL_OPERATION, "renaming system collections is not allowed");
    }
    Ok(())
}

/// Refuses a name that no collection can be renamed from or to. A dollar and too great a length are illegal operations here and
/// bad names elsewhere.
///
/// # Errors
/// InvalidNamespace (73), IllegalOperation (20).
pub fn check_name(ns: &str) -> Result<()> {
    if ns.contains('$') {
        bail!(ILLEGAL_OPERATION, "renameCollection does not take names with '$': {ns}");
    }
    let (db, name) = split_namespace(ns);
    crate::request::check_database_name(db)?;
    if ns.len() > NAMESPACE_BYTES_MAX {
        bail!(
            ILLEGAL_OPERATION,
            "Fully qualified namespace is too long. Namespace: {ns} Max: {NAMESPACE_BYTES_MAX}"
        );
    }
    crate::request::check_collection_name(db, name)
}

/// What becomes of a collection that has the target's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DropTarget {
    Refuse,
    Drop,
    /// It goes if it is this one. There must be one.
    Only([u8; 16]),
}

impl DropTarget {
    /// Reads `dropTarget`.
    ///
    /// # Errors
    /// TypeMismatch (14), InvalidUUID (207).
    pub fn parse(body: Doc<'_>) -> Result<DropTarget> {
        match body.get("dropTarget") {
            None => Ok(DropTarget::Refuse),
            Some(ValueRef::Boolean(true)) => Ok(DropTarget::Drop),
            Some(ValueRef::Boolean(false)) => Ok(DropTarget::Refuse),
            Some(v @ ValueRef::Binary(..)) => match v.as_uuid() {
                Some(uuid) => Ok(DropTarget::Only(uuid)),
                None => bail!(INVALID_UUID, "uuid must be a 16-byte binary field with UUID (4) subtype"),
            },
            Some(v) => {
                Err(document::wrong_types("renameCollection.dropTarget", v.type_name(), "[bool, binData]"))
            }
        }
    }
    /// Whether the collection that stands there (`None`: there is none) is the one that may go.
    ///
    /// # Errors
    /// CollectionUUIDMismatch (361), for one that was named and is another.
    pub fn check(self, to: &str, actual: Option<[u8; 16]>) -> Result<()> {
        match self {
            DropTarget::Only(expected) if actual != Some(expected) => {
                Err(crate::collection_uuid::mismatch(to, expected, None))
            }
            _ => Ok(()),
        }
    }
    pub fn drops(self) -> bool {
        self != DropTarget::Refuse
    }
}

/// Renames a collection, which keeps its UUID. A collection with the target's name goes when `target` says so.
///
/// # Errors
/// NamespaceNotFound (26), NamespaceExists (48), CommandNotSupportedOnView (166), CollectionUUIDMismatch (361).
pub async fn rename(node: &Node, op: &Operation, from: &str, to: &str, target: DropTarget) -> Result<()> {
    if matches!(target, DropTarget::Only(_)) && split_namespace(from).0 != split_namespace(to).0 {
        bail!(INVALID_OPTIONS, "a UUID as dropTarget is not taken where a collection changes its database");
    }
    crate::write::extras::check_case(node, split_namespace(to).0)?;
    let standing = |c: Option<&Collection>| target.check(to, c.map(Collection::uuid));
    standing(node.namespaces.slot(to).read_unchecked().collection.as_ref())?;
    rename_checked(node, op, (from, to), target.drops(), Versioned::Source, standing).await
}

/// Puts a collection of the node's own making in the place of `to`, where the request names the placement of `to`.
///
/// # Errors
/// Those of [`rename`]; a stale version of `to`, which then stays as it is.
pub async fn put_in_place(node: &Node, op: &Operation, made: &str, to: &str) -> Result<()> {
    rename_checked(node, op, (made, to), true, Versioned::Target, |_| Ok(())).await
}

/// Whose placement the versions of a routed request speak of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Versioned {
    Source,
    /// The source is of the node's own making.
    Target,
}

/// As [`rename`], if `check` accepts the target as it stands at the moment of the change.
pub(super) async fn rename_checked(
    node: &Node,
    op: &Operation,
    (from, to): (&str, &str),
    drop_target: bool,
    versioned: Versioned,
    check: impl Fn(Option<&Collection>) -> Result<()>,
) -> Result<()> {
    let (source, target) = (node.namespaces.slot(from), node.namespaces.slot(to));
    let (first, second) = if from < to { (&source, &target) } else { (&target, &source) };
    let slots = [&**first, &**second];
    let dropped = node.locked(op, &slots, || {
        let (named, other) = match versioned {
            Versioned::Source => (&source, &target),
            Versioned::Target => (&target, &source),
        };
        node.write_wide_or_section(op, &op.received, (named, &[other]), |unit| {
            rename_latched(unit, from, to, drop_target, &check)
        })
    });
    // The trees are freed here, outside the latches.
    if let Some(gone) = dropped.await? {
        node.forget_dropped(gone.uuid(), to);
    }
    node.index_use.rename(from, to);
    Ok(())
}

/// Renames under both latches; returns the collection that gave way.
pub(crate) fn rename_latched(
    unit: &mut WideUnit<'_>,
    from: &str,
    to: &str,
    drop_target: bool,
    check: impl Fn(Option<&Collection>) -> Result<()>,
) -> Result<Option<Collection>> {
    let Some((s, t)) = unit.pair(from, to) else { return Ok(None) };
    if s.view.is_some() {
        bail!(COMMAND_NOT_SUPPORTED_ON_VIEW, "cannot rename view: {from}");
    }
    if s.collection.is_none() {
        bail!(NAMESPACE_NOT_FOUND, "Source collection {from} does not exist");
    }
    if t.view.is_some() || (t.collection.is_some() && !drop_target) {
        bail!(NAMESPACE_EXISTS, "target namespace exists");
    }
    check(t.collection.as_ref())?;
    let dropped = t.uninstall();
    let Some(mut c) = s.uninstall() else { return Ok(None) };
    let mut o = doc! { "renameCollection": from, "to": to, "stayTemp": false };
    if let Some(old) = &dropped {
        o.push("dropTarget", Value::uuid(old.uuid()));
    }
    let uuid = c.uuid();
    c.rename(to);
    t.install(c);
    if let Some(mut source) = unit.on(from) {
        source.command(Some(uuid), o, None, false);
    }
    Ok(dropped)
}
