//! renameCollection, within a database and across databases of the node.

use crate::write::commit::WideUnit;
use crate::{Node, Operation, Request};
use document::{Document, Result, Value, bail, doc, err};
use storage::Collection;
use storage::split_namespace;

/// Runs a `renameCollection` command (against `admin`).
pub async fn rename_collection(node: &Node, op: &Operation, request: Request<'_>) -> Result<Document> {
    let text = |v: Option<document::ValueRef<'_>>, field: &str| {
        v.and_then(|v| v.as_str()).map(str::to_string).ok_or_else(|| {
            err!(
                TYPE_MISMATCH,
                "BSON field 'renameCollection.{field}' is the wrong type, expected type 'string'"
            )
        })
    };
    let from = text(request.argument(), "renameCollection")?;
    let to = text(request.body.get("to"), "to")?;
    let drop_target = request.body.get("dropTarget").is_some_and(|v| v.truthy());
    for ns in [&from, &to] {
        let (db, name) = split_namespace(ns);
        crate::request::check_collection_name(db, name)?;
    }
    if [&from, &to].iter().any(|ns| *ns == "local.oplog.rs") && node.is_replica_set() {
        bail!(ILLEGAL_OPERATION, "can't rename live oplog while replicating");
    }
    if from.starts_with("local.") != to.starts_with("local.") {
        bail!(
            ILLEGAL_OPERATION,
            "Cannot rename collections between a replicated and an unreplicated database"
        );
    }
    if from == to {
        bail!(ILLEGAL_OPERATION, "Can't rename a collection to itself");
    }
    if split_namespace(&from).1.starts_with("system.") || split_namespace(&to).1.starts_with("system.") {
        bail!(ILLEGAL_OPERATION, "renaming system collections is not allowed");
    }
    rename(node, op, &from, &to, drop_target).await?;
    Ok(Document::new())
}

/// Renames a collection, which keeps its UUID. The target goes when `drop_target` says so.
///
/// # Errors
/// NamespaceNotFound (26), NamespaceExists (48), CommandNotSupportedOnView (166).
pub async fn rename(node: &Node, op: &Operation, from: &str, to: &str, drop_target: bool) -> Result<()> {
    rename_checked(node, op, (from, to), drop_target, Versioned::Source, |_| Ok(())).await
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
    dropped.await.map(drop)
}

/// Renames under both latches; returns the collection that gave way.
fn rename_latched(
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
