//! Namespaces that are views of something else than a collection: the log and the images in it, the session table.

use super::find::{FindCommand, Parsed};
use super::rows::Rows;
use crate::oplog_view::OplogRows;
use crate::{Node, Operation};
use document::{DocBuf, Result, meter};
use query::sort::Sorter;
use std::sync::atomic::Ordering;

pub(crate) const OPLOG: &str = "local.oplog.rs";
pub(crate) const TRANSACTIONS: &str = "config.transactions";
const PREIMAGES: &str = "config.system.preimages";
const RETRY_IMAGES: &str = "config.image_collection";

/// Whether reads of this namespace do not go to a collection.
pub fn is_pseudo(ns: &str) -> bool {
    matches!(ns, OPLOG | TRANSACTIONS | PREIMAGES | RETRY_IMAGES)
}

/// The rows of a find on such a namespace; `None` for ordinary ones.
pub fn rows(
    node: &Node,
    op: &Operation,
    ns: &str,
    command: &FindCommand<'_>,
    parsed: &mut Parsed,
) -> Result<Option<Rows>> {
    if !is_pseudo(ns) || (ns == OPLOG && !node.is_replica_set()) {
        return Ok(None);
    }
    let filter = std::mem::take(&mut parsed.filter);
    let projection = parsed.projection.take();
    let limit = Some(command.limit).filter(|n| *n > 0);
    let sorted = parsed.sort.as_ref().is_some_and(|s| !s.is_empty());
    if ns == OPLOG && !sorted {
        let hinted = match &parsed.hint {
            Some(query::planner::Hint::Natural(d)) => Some(*d),
            _ => None,
        };
        let natural = parsed.sort.as_ref().and_then(|s| s.natural()).or(hinted);
        let member = op.client.internal.load(Ordering::Relaxed);
        return OplogRows::open(node, filter, natural, command.skip, limit, projection)
            .map(|rows| Some(Rows::Oplog(Box::new(rows.whole(member)))));
    }
    let mut documents = Vec::new();
    for d in all(node, ns)? {
        meter::spend(2)?;
        if filter.matches(d.doc())? {
            documents.push(d);
        }
    }
    if let Some(spec) = parsed.sort.as_ref().filter(|s| !s.is_empty()) {
        let mut sorter = Sorter::new(spec.clone(), None, query::sort::MEMORY_LIMIT_BYTES);
        for d in documents.drain(..) {
            sorter.push(d)?;
        }
        documents = sorter.finish();
    }
    let skip = usize::try_from(command.skip).unwrap_or(usize::MAX);
    let take = limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    for d in documents.into_iter().skip(skip).take(take) {
        out.push(match &projection {
            None => d,
            Some(p) => {
                let mut bytes = Vec::new();
                p.apply(d.doc(), &mut bytes)?;
                DocBuf::from_validated(bytes)
            }
        });
    }
    Ok(Some(Rows::of(out)))
}

/// Every document of the namespace, for pipelines and sorts; the log is bounded by its retention.
fn all(node: &Node, ns: &str) -> Result<Vec<DocBuf>> {
    if ns == OPLOG {
        return crate::oplog_view::all(node);
    }
    if ns == PREIMAGES {
        return crate::change_stream::images::all(node);
    }
    if ns == RETRY_IMAGES {
        return crate::write::retry_images::all(node);
    }
    Ok(node.sessions.documents().iter().map(|d| d.to_doc_buf()).collect())
}

/// The rows of a pipeline's collection, where it is such a namespace.
pub fn source(node: &Node, ns: &str, filter: query::matcher::Matcher) -> Result<Option<Rows>> {
    if ns == OPLOG && node.is_replica_set() {
        return Ok(Some(Rows::Oplog(Box::new(OplogRows::open(node, filter, None, 0, None, None)?))));
    }
    if !is_pseudo(ns) || ns == OPLOG {
        return Ok(None);
    }
    let mut out = Vec::new();
    for d in all(node, ns)? {
        meter::spend(2)?;
        if filter.matches(d.doc())? {
            out.push(d);
        }
    }
    Ok(Some(Rows::of(out)))
}
