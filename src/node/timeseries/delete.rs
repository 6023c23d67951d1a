//! delete and findAndModify's remove: measurements out of their buckets, by any filter.

use super::{Series, refuse_transaction};
use crate::read::candidates::{Candidates, Search};
use crate::write::aside::Aside;
use crate::write::delete::DeleteStatement;
use crate::write::retry::REMOVES;
use crate::write::unit::{Origin, WriteUnit};
use crate::{Node, Operation};
use document::{Doc, DocBuf, DocWriter, Result, bail};
use query::QueryContext;
use query::matcher::Matcher;
use query::timeseries::{bucket, predicate};
use storage::RecordId;

/// The filter of the buckets that can hold what a filter on measurements matches.
pub(crate) fn bucket_filter(series: &Series, filter: Doc<'_>, context: &QueryContext) -> Result<Matcher> {
    match predicate::on_buckets(&filter.to_document(), &series.options) {
        Some(on_buckets) => Matcher::parse(on_buckets.to_doc_buf().doc(), context),
        None => Ok(Matcher::always()),
    }
}

/// What a delete removed: how many measurements, and the first of them.
#[derive(Default)]
pub(crate) struct Removed {
    pub n: i64,
    pub first: Option<DocBuf>,
}

/// Removes what matches, or the first of it.
pub(crate) async fn delete(
    node: &Node,
    op: &Operation,
    (series, buckets): &(Series, Matcher),
    s: &DeleteStatement,
    stmt: i32,
    image: bool,
) -> Result<Removed> {
    refuse_transaction(op, series, "delete from")?;
    if s.sort.is_some() {
        bail!(INVALID_OPTIONS, "Cannot perform a findAndModify with sort on a time-series collection");
    }
    let search = Search { filter: buckets, sort: None, hint: None };
    let (_kept, mut candidates) = match s.one {
        true => (None, Candidates::open(node, op, &series.buckets, search).await?),
        false => {
            let (kept, found) = Candidates::open_for_many(node, op, &series.buckets, search).await?;
            (Some(kept), found)
        }
    };
    let mut removed = Removed::default();
    loop {
        op.check_interrupt()?;
        let records = candidates.next(op).await?;
        if records.is_empty() {
            return Ok(removed);
        }
        for record in records {
            let aside = Aside::default();
            let of_bucket = loop {
                let written = node
                    .write_waiting(op, &candidates.received, &series.buckets, |unit| {
                        candidates.check_collection(unit)?;
                        from_bucket(unit, series, s, &aside, record, (stmt, image))
                    })
                    .await;
                if let Some((removed, _)) = aside.unless(written, |old| matching(series, s, old))? {
                    break removed;
                }
            };
            removed.n += of_bucket.n;
            removed.first = removed.first.or(of_bucket.first);
            if s.one && removed.n > 0 {
                return Ok(removed);
            }
        }
        tokio::task::yield_now().await;
    }
}

/// The rows of a bucket, and which of them go.
fn matching(series: &Series, s: &DeleteStatement, bucket: Doc<'_>) -> Result<Vec<(DocBuf, bool)>> {
    let mut found = false;
    let rows = bucket::rows(bucket)?.into_iter().map(|row| {
        let measurement = bucket::measurement(row.doc(), bucket, &series.options);
        let goes = !(s.one && found) && s.filter.matches(measurement.doc())?;
        found |= goes;
        Ok((row, goes))
    });
    rows.collect()
}

fn from_bucket(
    unit: &mut WriteUnit<'_>,
    series: &Series,
    s: &DeleteStatement,
    aside: &Aside<Vec<(DocBuf, bool)>>,
    record: RecordId,
    (stmt, image): (i32, bool),
) -> Result<Removed> {
    let Some(old) = unit.collection().and_then(|c| c.get(record)).map(|d| d.to_owned()) else {
        return Ok(Removed::default());
    };
    if !unit.owns(old.doc()) {
        return Ok(Removed::default());
    }
    let mut removed = Removed::default();
    let mut kept = Vec::new();
    for (row, goes) in aside.latched(old.doc(), || matching(series, s, old.doc()))? {
        if !goes {
            kept.push(row);
            continue;
        }
        removed.n += 1;
        if removed.first.is_none() {
            removed.first = Some(bucket::measurement(row.doc(), old.doc(), &series.options));
        }
    }
    if removed.n == 0 {
        return Ok(removed);
    }
    let image = removed.first.as_ref().filter(|_| image);
    let more = DocWriter::build(|w| {
        image.iter().for_each(|d| w.document("preImage", d.doc()));
        if !kept.is_empty() {
            w.bool(REMOVES, true);
        }
    });
    let origin = Origin {
        statement: Some(stmt).filter(|_| s.one),
        from_migrate: unit.is_orphan(old.doc()),
        more: Some(more.doc()),
        ..Origin::default()
    };
    if kept.is_empty() {
        unit.delete(record, origin)?;
        return Ok(removed);
    }
    let rows: Vec<Doc<'_>> = kept.iter().map(DocBuf::doc).collect();
    let new = bucket::rebuilt(old.doc(), &rows, &series.options)?;
    let prepared = unit.prepare_update(record, old.doc(), new.doc(), None)?;
    unit.put(record, prepared.shorter_of(new.doc()), new.doc(), origin)?;
    Ok(removed)
}
