//! Views: a name for a pipeline over another namespace.

use crate::ddl::lock::of_database;
use crate::namespace::{Met, Slot, SlotState};
use crate::write::commit::WideUnit;
use crate::write::unit::WriteUnit;
use crate::{Node, Operation, Origin};
use document::{Collation, Doc, Document, Result, Value, ValueRef, bail};
use query::pipeline::{Context, Namespace, parse, refuse_own};
use std::collections::BTreeMap;
use std::sync::Arc;
use storage::CollectionView;

/// Views that may stand on one another.
const DEPTH_MAX: usize = 20;
/// The largest pipeline of a view.
const PIPELINE_BYTES_MAX: usize = 16_000_000;

/// A view's definition, as `system.views` stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The collection or view it reads, in the same database, without the database name.
    pub on: String,
    pub pipeline: Vec<Value>,
    /// Simple unless the view says otherwise: a view does not inherit.
    pub collation: Collation,
}

impl View {
    /// The stages of a definition that a client gives; nulls among them count for nothing.
    pub fn stages(pipeline: ValueRef<'_>) -> Value {
        let given = pipeline.as_array().unwrap_or(Doc::empty());
        Value::Array(
            given.iter().map(|e| e.value()).filter(|v| *v != ValueRef::Null).map(|v| v.to_value()).collect(),
        )
    }
    /// # Errors
    /// ViewPipelineMaxSizeExceeded (195).
    fn check_size(&self) -> Result<()> {
        let bytes = Value::Array(self.pipeline.clone()).to_holder().bytes().len();
        if bytes > PIPELINE_BYTES_MAX {
            bail!(
                VIEW_PIPELINE_MAX_SIZE_EXCEEDED,
                "View pipeline exceeds maximum size; maximum size is {PIPELINE_BYTES_MAX}"
            );
        }
        Ok(())
    }
    /// Checks the pipeline as a view of `db` would run it.
    ///
    /// # Errors
    /// 167 for a stage that writes, 167 or 40573 for a change stream, 2 for a view on nothing, and what parsing gives.
    pub fn check_pipeline(&self, node: &Node, db: &str) -> Result<()> {
        self.check()?;
        if self.on.is_empty() {
            bail!(BAD_VALUE, "'viewOn' cannot be empty");
        }
        // The name may be longer than any collection's: the view is then empty.
        crate::request::check_characters(db, &self.on)?;
        self.check_size()?;
        for (at, stage) in self.pipeline.iter().enumerate() {
            match stage.as_document().and_then(|d| d.first()).map(|(name, _)| name) {
                Some(name @ ("$out" | "$merge")) => bail!(
                    OPTION_NOT_SUPPORTED_ON_VIEW,
                    "The aggregation stage {name} in location {at} of the pipeline cannot be used in a view definition"
                ),
                Some("$changeStream") if node.is_replica_set() => {
                    bail!(OPTION_NOT_SUPPORTED_ON_VIEW, "$changeStream cannot be used in a view definition")
                }
                Some("$changeStream") => {
                    bail!(40573, "The $changeStream stage is only supported on replica sets")
                }
                Some("$listSessions") if self.on != "system.sessions" => {
                    bail!(INVALID_NAMESPACE, "$listSessions must be run against config.system.sessions")
                }
                _ => {}
            }
        }
        let held = Value::Array(self.pipeline.clone()).to_holder();
        refuse_own(held.get("").and_then(|v| v.as_array()).unwrap_or(Doc::empty()))?;
        let context = Context::new(Namespace::new(db, &*self.on), node.parse_context(Document::new()));
        parse(&self.pipeline, &context).map(|_| ())
    }
    /// The namespaces that it reads, itself or by its pipeline.
    pub(crate) fn reads(&self, node: &Node, db: &str) -> Result<Vec<String>> {
        let context = Context::new(Namespace::new(db, &*self.on), node.parse_context(Document::new()));
        reads(&self.pipeline, &context)
    }
    /// Refuses a definition of `ns` by which a view would come to read itself, or a view of another collation.
    ///
    /// # Errors
    /// GraphContainsCycle (5), ViewDepthLimitExceeded (165), OptionNotSupportedOnView (167).
    pub fn check_graph(&self, node: &Node, ns: &str) -> Result<()> {
        let db = storage::split_namespace(ns).0;
        let mut level = self.reads(node, db)?;
        for _ in 0..DEPTH_MAX {
            if level.iter().any(|read| read == ns) {
                bail!(GRAPH_CONTAINS_CYCLE, "View cycle detected: {ns} would read itself");
            }
            let mut next = Vec::new();
            for read in &level {
                let view = node.namespaces.slot(read).read_unchecked().view.clone();
                if let Some(view) = view {
                    if view.collation != self.collation {
                        bail!(
                            OPTION_NOT_SUPPORTED_ON_VIEW,
                            "View {ns} has conflicting collation with view {read}"
                        );
                    }
                    next.extend(view.reads(node, storage::split_namespace(read).0)?);
                }
            }
            if next.is_empty() {
                return Ok(());
            }
            next.sort_unstable();
            next.dedup();
            level = next;
        }
        bail!(
            VIEW_DEPTH_LIMIT_EXCEEDED,
            "View depth too deep or view cycle detected; maximum depth is {DEPTH_MAX}"
        )
    }
    /// # Errors
    /// TypeMismatch (14) and 40323 for a pipeline that is no list of one-stage documents.
    pub fn check(&self) -> Result<()> {
        for stage in &self.pipeline {
            match stage.as_document() {
                Some(d) if d.len() == 1 => {}
                Some(_) => {
                    bail!(40323, "A pipeline stage specification object must contain exactly one field.")
                }
                None => bail!(TYPE_MISMATCH, "Each element of the 'pipeline' array must be an object"),
            }
        }
        Ok(())
    }
    /// Reads a document of `system.views`: its namespace and the view.
    pub fn from_document(d: &Document) -> Option<(String, View)> {
        let view = View {
            on: d.get_str("viewOn")?.to_string(),
            pipeline: d.get_array("pipeline")?.clone(),
            collation: d
                .get_document("collation")
                .and_then(|c| Collation::of_document(c).ok())
                .unwrap_or_default(),
        };
        Some((d.get_str("_id")?.to_string(), view))
    }
}

/// The namespaces that a pipeline reads, its own first.
///
/// # Errors
/// What parsing gives.
pub(crate) fn reads(pipeline: &[Value], context: &Context) -> Result<Vec<String>> {
    let others = parse(pipeline, context)?.involved_namespaces().into_iter().map(|(ns, _)| ns.to_string());
    Ok(std::iter::once(context.namespace.to_string()).chain(others).collect())
}

/// Defines the view of `slot` by `definition`, a document of `system.views`, in one commit: so the namespace never holds
/// a collection and a view. `check` looks at the namespace under its latch and returns the view to put there, `None`
/// when it is there already.
///
/// # Errors
/// Those of `check`.
pub(crate) async fn define(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    definition: &Document,
    check: impl Fn(&SlotState) -> Result<Option<View>>,
) -> Result<()> {
    let definitions = node.namespaces.slot(&format!("{}.system.views", slot.database.name));
    let bytes = definition.to_doc_buf();
    let change = |unit: &mut WideUnit<'_>| {
        let Some(target) = unit.on(&slot.ns) else { return Ok(()) };
        match check(target.state)? {
            Some(view) => put(unit, slot, bytes.doc(), view),
            None => Ok(()),
        }
    };
    let attempt = || node.write_wide_or_section(op, &of_database(op), (slot, &[&definitions]), change);
    node.locked(op, &[slot], attempt).await
}

/// Puts the view of `slot` there, and its definition into `system.views`. The commit is open over both.
///
/// # Errors
/// Those of writing the definition.
pub(crate) fn put(unit: &mut WideUnit<'_>, slot: &Slot, definition: Doc<'_>, view: View) -> Result<()> {
    if let Some(mut definitions) = unit.on(&format!("{}.system.views", slot.database.name)) {
        definitions.ensure_exists();
        let found = definition.get("_id").and_then(|id| definitions.collection()?.record_of_id(id));
        match found {
            Some(record) => definitions.replace(record, definition, Origin::default())?,
            None => drop(definitions.insert(definition, Origin::default())?),
        }
    }
    if let Some(target) = unit.on(&slot.ns) {
        target.state.set_view(Some(Arc::new(view)));
    }
    Ok(())
}

/// Removes the view of `slot` and its definition in one commit, and in the same, before them, what `take` takes out of
/// `buckets`, those of a time series: a log cut off in between has emptied it. The caller holds the intent locks.
pub(crate) fn remove<T>(
    node: &Node,
    op: &Operation,
    slot: &Slot,
    buckets: Option<&Slot>,
    take: impl FnOnce(&mut WriteUnit<'_>) -> Option<T>,
) -> Result<Met<Option<T>>> {
    let definitions = node.namespaces.slot(&format!("{}.system.views", slot.database.name));
    let id = Value::from(slot.ns.as_str()).to_holder();
    let others: Vec<&Slot> = std::iter::once(&*definitions).chain(buckets).collect();
    node.write_wide_or_section(op, &of_database(op), (slot, &others), |unit| {
        let taken = buckets.and_then(|buckets| take(&mut unit.on(&buckets.ns)?));
        if let Some(mut definitions) = unit.on(&definitions.ns) {
            let found = id.get("").and_then(|id| definitions.collection()?.record_of_id(id));
            if let Some(record) = found {
                definitions.delete(record, Origin::default())?;
            }
        }
        if let Some(target) = unit.on(&slot.ns) {
            target.state.set_view(None);
        }
        Ok(taken)
    })
}

impl Node {
    /// Puts the views that `system.views` of every database describes into their slots.
    pub(crate) fn load_views(&self) {
        // A snapshot defines no views: its definitions are those of the database that it is a copy of.
        let defines =
            |s: &&Arc<Slot>| s.ns.ends_with(".system.views") && !crate::fork::is_hidden(&s.database.name);
        for slot in self.namespaces.all().iter().filter(defines) {
            for (ns, view) in defined_in(slot) {
                self.namespaces.slot(&ns).write_unchecked().set_view(Some(Arc::new(view)));
            }
        }
    }

    /// Makes the views of a database what its `system.views` says. One that stays is there all the time. To be called under the
    /// gate: a snapshot of the node has the views with their definitions.
    pub(crate) fn reload_views(&self, db: &str) {
        let mut defined = defined_in(&self.namespaces.slot(&format!("{db}.system.views")));
        let put = |slot: &Slot, view: Option<View>| {
            let mut state = slot.write_unchecked();
            if state.view.as_deref() != view.as_ref() {
                self.snapshots.before_change(slot, &mut state);
                state.set_view(view.map(Arc::new));
            }
        };
        for slot in self.namespaces.of_database(db) {
            put(&slot, defined.remove(&slot.ns));
        }
        for (ns, view) in defined {
            put(&self.namespaces.slot(&ns), Some(view));
        }
    }
}

/// The views that a `system.views` defines, by name.
fn defined_in(slot: &Slot) -> BTreeMap<String, View> {
    let state = slot.read_unchecked();
    let Some(c) = &state.collection else { return BTreeMap::new() };
    let mut records = c.records();
    let first = records.first();
    let all = std::iter::successors(first, |_| records.next());
    all.filter_map(|(_, d)| View::from_document(&d.to_document())).collect()
}
