//! insert into a time series collection: measurements, sorted into buckets, some thousand under one latch.
//!
//! What is written is a bucket, and an index refuses it as a whole. So that one measurement is refused and no other, in the order of the
//! statements, each is looked at by itself before it joins any ([`Refusing`]).

use super::{Series, refuse_transaction};
use crate::session::Checkout;
use crate::write::insert::{Flags, normalized};
use crate::write::statement::{Outcome, ends_command_of, executed_before, is_stale, stops};
use crate::write::unit::{Origin, WriteUnit};
use crate::write::update::check_size;
use crate::{Node, Operation};
use document::{Doc, DocBuf, ObjectId, Result, ValueRef, bail};
use query::timeseries::bucket::{self, Measurement, ROWS_MAX, Room};
use std::collections::HashMap;
use std::ops::Range;
use storage::index::{FieldKind, keys};
use storage::{IndexSpec, RecordId};

/// Measurements that are written in one commit.
const SLICE: usize = 1000;
/// The largest row: what a bucket adds, and the rows that are there, must still fit into a document.
const ROW_BYTES_MAX: usize = 15 * 1024 * 1024;

/// Measurements of one bucket's meta and window.
struct Group {
    key: Vec<u8>,
    meta: DocBuf,
    window: i64,
    /// Time and row, with the position in the command and the statement.
    rows: Vec<(i64, DocBuf, usize, i32)>,
    /// So many are written.
    written: usize,
}

/// Inserts measurements; `statement` numbers them.
pub(crate) async fn insert(
    node: &Node,
    op: &Operation,
    series: &Series,
    documents: &[Doc<'_>],
    flags: Flags,
    checkout: Option<&Checkout>,
    statement: impl Fn(usize) -> i32,
) -> Result<Outcome> {
    refuse_transaction(op, series, "insert into")?;
    let mut outcome = Outcome::default();
    let mut next = 0;
    while next < documents.len() {
        op.check_interrupt()?;
        let slice = next..documents.len().min(next + SLICE);
        next = slice.end;
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut failed = None;
        let refusing = Refusing::of(series);
        for index in slice {
            let stmt = statement(index);
            if executed_before(checkout, stmt)?.is_some() {
                outcome.retried.push(stmt);
                outcome.n += 1;
                continue;
            }
            let prepared = prepared(node, series, documents[index], flags).and_then(|m| {
                let key = group_key(&m, series);
                refusing.check(&m, series, || places.contains_key(&key))?;
                Ok((m, key))
            });
            match prepared {
                Ok((m, key)) => join(&mut groups, &mut places, m, key, series, (index, stmt)),
                Err(e) if stops(op, flags.ordered) => {
                    failed = Some((index, e));
                    break;
                }
                Err(e) => outcome.fail(index, &e),
            }
        }
        let after = next..documents.len();
        let ended = write(node, op, series, &mut groups, &mut outcome, (flags, after)).await?;
        if ended {
            break;
        }
        if let Some((index, e)) = failed {
            outcome.fail(index, &e);
            break;
        }
        tokio::task::yield_now().await;
    }
    Ok(outcome)
}

fn prepared(node: &Node, series: &Series, d: Doc<'_>, flags: Flags) -> Result<Measurement> {
    let stored = normalized(node, d, flags.keep_empty_timestamps)?;
    if stored.doc().bytes().len() > ROW_BYTES_MAX {
        bail!(
            BSON_OBJECT_TOO_LARGE,
            "Measurement is too large for a bucket: {} bytes, {ROW_BYTES_MAX} are allowed",
            stored.doc().bytes().len()
        );
    }
    bucket::split(stored.doc(), &series.options)
}

/// The indexes that may refuse a measurement.
struct Refusing(Vec<IndexSpec>);

impl Refusing {
    /// Those of a kind of their own, and those of several fields, which may be several arrays. The time is none.
    fn of(series: &Series) -> Refusing {
        let times = ["min", "max"].map(|bound| format!("control.{bound}.{}", series.options.time));
        let refuses = |spec: &IndexSpec| {
            let fields = spec.fields().iter().filter(|field| !times.contains(&field.path));
            fields.clone().count() > 1 || fields.into_iter().any(|field| !is_plain(field.kind))
        };
        let state = series.buckets.read_unchecked();
        let specs = state.collection.iter().flat_map(|c| c.indexes()).map(|index| index.spec());
        Refusing(specs.filter(|spec| refuses(spec)).cloned().collect())
    }

    /// Looks at a measurement as a bucket of its own. The meta of a bucket that has measurements already is known to be taken.
    fn check(&self, m: &Measurement, series: &Series, known: impl FnOnce() -> bool) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let known = known();
        let of_meta = |spec: &IndexSpec| spec.fields().iter().all(|field| field.names[0] == META);
        let arrays = holds_array(m.meta.doc()) || holds_array(m.row.doc());
        let asked = |spec: &&IndexSpec| {
            let plain = spec.wildcard().is_none() && spec.fields().iter().all(|field| is_plain(field.kind));
            (arrays || !plain) && !(known && of_meta(spec))
        };
        let mut asked = self.0.iter().filter(asked).peekable();
        if asked.peek().is_none() {
            return Ok(());
        }
        let alone = bucket::build(ObjectId::default(), m.meta.doc(), &[m.row.doc()], &series.options)?;
        asked.filter(|spec| spec.covers(alone.doc())).try_for_each(|spec| keys::check(spec, alone.doc()))
    }
}

/// The field of a bucket that holds what its measurements have in common.
const META: &str = "meta";

fn is_plain(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::Ascending | FieldKind::Descending)
}

fn holds_array(d: Doc<'_>) -> bool {
    d.iter().any(|e| match e.value() {
        ValueRef::Array(_) => true,
        ValueRef::Document(inner) => holds_array(inner),
        _ => false,
    })
}

/// What the measurements of one bucket have in common: window and meta.
fn group_key(m: &Measurement, series: &Series) -> Vec<u8> {
    let mut key = Vec::with_capacity(8 + m.meta.bytes().len());
    key.extend_from_slice(&series.packing.window(m.time).to_be_bytes());
    key.extend_from_slice(m.meta.bytes());
    key
}

fn join(
    groups: &mut Vec<Group>,
    places: &mut HashMap<Vec<u8>, usize>,
    m: Measurement,
    key: Vec<u8>,
    series: &Series,
    (index, stmt): (usize, i32),
) {
    let at = places.get(&key).copied().unwrap_or_else(|| {
        let window = series.packing.window(m.time);
        places.insert(key.clone(), groups.len());
        groups.push(Group { key, meta: m.meta, window, rows: Vec::new(), written: 0 });
        groups.len() - 1
    });
    groups[at].rows.push((m.time, m.row, index, stmt));
}

/// Writes the groups as one commit; true when the command has ended by an error of its own. Where that is a stale version, what comes
/// `after` them was not executed either, and an unordered command says so of each.
async fn write(
    node: &Node,
    op: &Operation,
    series: &Series,
    groups: &mut [Group],
    outcome: &mut Outcome,
    (flags, after): (Flags, Range<usize>),
) -> Result<bool> {
    if groups.is_empty() {
        return Ok(false);
    }
    let written = node
        .write_waiting(op, &op.received, &series.buckets, |unit| {
            groups.iter_mut().try_for_each(|group| write_group(unit, series, group))
        })
        .await;
    outcome.n += groups.iter().map(|g| g.written as i64).sum::<i64>();
    let Err(e) = written else { return Ok(false) };
    if ends_command_of(op, &e) {
        return Err(e);
    }
    let mut left: Vec<usize> =
        groups.iter().flat_map(|g| g.rows[g.written..].iter().map(|(_, _, index, _)| *index)).collect();
    left.sort_unstable();
    if is_stale(&e) {
        left.extend(after);
    }
    for index in left.into_iter().take(if flags.ordered { 1 } else { usize::MAX }) {
        outcome.fail(index, &e);
    }
    Ok(flags.ordered || is_stale(&e))
}

fn write_group(unit: &mut WriteUnit<'_>, series: &Series, group: &mut Group) -> Result<()> {
    while group.written < group.rows.len() {
        unit.check_room()?;
        let (uuid, open) = open_bucket(unit, series, group)?;
        let rest = &group.rows[group.written..];
        let room = open.as_ref().map_or(Room { rows: ROWS_MAX, bytes: bucket::BYTES_MAX }, |(_, _, room)| {
            Room { rows: room.rows, bytes: room.bytes }
        });
        let mut bytes = 0;
        let fitting = rest.iter().take(room.rows).take_while(|(_, row, ..)| {
            let fits = bytes == 0 || bytes + row.bytes().len() <= room.bytes;
            bytes += row.bytes().len();
            fits
        });
        let rows: Vec<Doc<'_>> = fitting.map(|(_, row, ..)| row.doc()).collect();
        let statements: Vec<i32> = rest[..rows.len()].iter().map(|(.., stmt)| *stmt).collect();
        let origin = Origin {
            statement: statements.first().copied(),
            also: statements.get(1..).unwrap_or_default(),
            ..Origin::default()
        };
        let appended = match open {
            Some((record, old, _)) => {
                let new = bucket::append(old.doc(), &rows, &series.options)?;
                Some((record, old, new)).filter(|(.., new)| check_size(new.doc()).is_ok())
            }
            None => None,
        };
        match appended {
            Some((record, old, new)) => {
                let prepared = unit.prepare_update(record, old.doc(), new.doc(), None)?;
                unit.put(record, prepared.shorter_of(new.doc()), new.doc(), origin)?;
            }
            None => {
                let first = rest[..rows.len()].iter().map(|(time, ..)| *time).min().unwrap_or_default();
                let id = bucket_id(unit.node, series.options.rounded(first));
                let new = bucket::build(id, group.meta.doc(), &rows, &series.options)?;
                check_size(new.doc())?;
                unit.insert(new.doc(), origin)?;
                unit.node.series.note(uuid, &group.key, id);
            }
        }
        group.written += rows.len();
    }
    Ok(())
}

/// The bucket that is being filled, looked at again.
#[allow(clippy::type_complexity)]
fn open_bucket(
    unit: &WriteUnit<'_>,
    series: &Series,
    group: &Group,
) -> Result<([u8; 16], Option<(RecordId, DocBuf, Room)>)> {
    let collection = unit.existing()?;
    let uuid = collection.uuid();
    let open = unit.node.series.get(uuid, &group.key).and_then(|id| {
        let (record, old) = collection.find_id(ValueRef::ObjectId(id))?;
        if unit.is_orphan(old) {
            return None;
        }
        let room = bucket::room(old, group.meta.doc(), group.window, &series.packing)?;
        Some((record, old.to_owned(), room))
    });
    Ok((uuid, open))
}

/// An id whose seconds are those of the bucket's least time.
fn bucket_id(node: &Node, millis: i64) -> ObjectId {
    let mut id = node.new_object_id();
    let seconds = u32::try_from(millis.div_euclid(1000).max(0)).unwrap_or(u32::MAX);
    id.0[..4].copy_from_slice(&seconds.to_be_bytes());
    id
}
