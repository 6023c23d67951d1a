//! `$out` into a time series: the buckets are filled under another name and take that of the target's at the end.

use super::{Series, ddl, insert, is_series, with_buckets};
use crate::ddl::{collections, indexes};
use crate::read::host::LocalHost;
use crate::read::output::output_beside;
use crate::write::insert::Flags;
use document::{Doc, DocBuf, Document, Error, Result, Value, bail};

/// The code for a target that is no time series.
const NO_SERIES: i32 = 7268700;
/// The code for a target that is another time series.
const OTHER_SERIES: i32 = 7406103;

/// What the buckets of the target are, or will be.
struct Target {
    options: Document,
    indexes: Vec<Document>,
}

/// Checks the time-series options of the `$out` that ends a pipeline.
///
/// # Errors
/// Those of the shape, InvalidOptions (72), BadValue (2).
pub(crate) fn check_options(stages: &[Value]) -> Result<()> {
    let out = stages.last().and_then(Value::as_document).and_then(|stage| stage.get_document("$out"));
    match out.and_then(|out| out.get_document("timeseries")) {
        Some(asked) => ddl::definition_for(asked.to_doc_buf().doc(), false).map(drop),
        None => Ok(()),
    }
}

impl LocalHost {
    /// Whether `$out` writes a time series: it says so, or the target is one.
    pub(crate) fn outputs_series(&self, target: &str, asked: Option<&Document>) -> bool {
        asked.is_some() || super::of(&self.node, &self.node.namespaces.slot(target)).is_some()
    }

    pub(crate) async fn out_series(
        &self,
        target: &str,
        asked: Option<&Document>,
        batch: Vec<DocBuf>,
        end: bool,
    ) -> Result<()> {
        let (node, mut op) = (&self.node, self.aside());
        let routed = self.towards(target);
        op.received.database = routed.received.database;
        let begun = self.writing.temporary.lock().clone();
        let temporary = match begun {
            Some(ns) => {
                // With the primary goes what was begun there: then the versions tell, not that it is gone.
                node.namespaces.slot(target).read(&routed, |_| Ok(())).await?;
                ns
            }
            None => {
                let ns = self.begin_series(&routed, &op, target, asked).await?;
                *self.writing.temporary.lock() = Some(ns.clone());
                ns
            }
        };
        let Some(series) = with_buckets(target, node.namespaces.slot(&temporary)) else {
            bail!(NAMESPACE_NOT_FOUND, "the output of $out, {temporary}, was dropped")
        };
        let docs: Vec<Doc<'_>> = batch.iter().map(DocBuf::doc).collect();
        let flags = Flags {
            ordered: true,
            keep_empty_timestamps: false,
            bypass_validation: true,
            from_migrate: false,
        };
        let outcome = insert::insert(node, &op, &series, &docs, flags, None, |_| -1).await?;
        if let Some(e) = outcome.first_error {
            return Err(e);
        }
        if end {
            ddl::put_in_place(node, &routed, &temporary, target, &series).await?;
            self.writing.temporary.lock().take();
        }
        Ok(())
    }

    async fn begin_series(
        &self,
        routed: &crate::Operation,
        op: &crate::Operation,
        target: &str,
        asked: Option<&Document>,
    ) -> Result<String> {
        let node = &self.node;
        let slot = node.namespaces.slot(target);
        let other = |s: &crate::namespace::SlotState| {
            s.collection.is_some() || s.view.as_ref().is_some_and(|v| !is_series(v))
        };
        if slot.read(routed, |s| Ok(other(s))).await? {
            return Err(Error::new(
                NO_SERIES,
                format!(
                    "$out with the option 'timeseries' needs a time-series collection, and {target} is none"
                ),
            ));
        }
        let there = super::of(node, &slot);
        if let Some(series) = &there {
            ddl::refuse_sharded(target, &series.buckets.read_unchecked())?;
        }
        let asked = asked.map(|d| ddl::definition_for(d.to_doc_buf().doc(), false)).transpose()?;
        let existing = there
            .map(|series| Target { options: series.buckets_options(), indexes: series.bucket_indexes() });
        let made = match (existing, asked) {
            (Some(made), Some(asked)) if made.options.get_document("timeseries") != Some(&asked) => {
                return Err(Error::new(
                    OTHER_SERIES,
                    format!("the time-series options of $out are not those of the collection {target}"),
                ));
            }
            (Some(made), _) => made,
            (None, asked) => {
                let asked = asked.unwrap_or_default();
                let indexes = ddl::default_indexes(&asked)?;
                Target { options: ddl::bucket_options(&Document::new(), asked), indexes }
            }
        };
        let ns = output_beside(node, target);
        collections::create_collection(node, op, &ns, made.options, None).await?;
        if !made.indexes.is_empty() {
            indexes::build_indexes(node, op, &node.namespaces.slot(&ns), &made.indexes, false).await?;
        }
        Ok(ns)
    }
}

impl Series {
    /// The option `timeseries` of the collection.
    pub fn definition(&self) -> Document {
        self.buckets_options().get_document("timeseries").cloned().unwrap_or_default()
    }
    pub(super) fn buckets_options(&self) -> Document {
        let state = self.buckets.read_unchecked();
        state.collection.as_ref().map(|c| c.meta().options.clone()).unwrap_or_default()
    }
    fn bucket_indexes(&self) -> Vec<Document> {
        let state = self.buckets.read_unchecked();
        let made = state.collection.iter().flat_map(|c| c.indexes());
        made.map(|i| i.spec()).filter(|s| !s.is_clustered()).map(indexes::complete).collect()
    }
}
