//! The bytes of a bucket. DO NOT CHANGE what is read: buckets are documents on disk and in the log.
//!
//! ```text
//! { _id: ObjectId,                    its seconds are those of the first measurement's time, rounded
//!   control: { version: 1001, min: {time, field...}, max: {...}, count: int, bytes: int },
//!   meta?: value,
//!   data: { blocks?: [binary...], tail?: [row...] } }
//!
//! row     a measurement without its meta field: { _id, time, field... }
//! block   0x01  rows u32  length u32   zstd( rows one behind the other )                   rows of different lengths
//!         0x02  rows u32  length u32   zstd( columns )      each row has length / rows bytes; column j is the j-th byte of
//!                                                           every row, each byte less the one before it (modulo 256)
//! ```
//!
//! Integers are little-endian; `length` is that of the rows together. New rows join the tail; 128 of them become a block, and so does
//! what there is of them when the bucket is full. Equal names and types make columns of zeros, counters and clocks make columns of ones,
//! so what is left of a row is about what differs from row to row. `control.min` and `control.max` speak of the plain values of
//! top-level fields other than `_id`; what is nested or long is left out, and so are fields beyond a number. They speak of the time of
//! every row.
//!
//! The version is none of the real server's: its compressed columns are another format, which is neither read nor written.
//!
//! Blocks may come from a client that writes buckets directly, so lengths are checked and every row is validated. What
//! a bucket's blocks claim to hold is bounded together, before room is made for it.

use super::Options;
use document::compare::compare;
use document::validate::{Limits, validate};
use document::{
    Doc, DocBuf, DocWriter, Document, Element, ObjectId, Result, Value, ValueRef, bail, err, meter,
};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use zstd::bulk::Compressor;

/// The version of the format.
const VERSION: i32 = 1001;
/// The most rows of a bucket.
pub const ROWS_MAX: usize = 1000;
/// Bytes of rows, uncompressed, at which a bucket is full.
pub const BYTES_MAX: usize = 125 * 1024;
/// Rows of the tail that become a block.
const TAIL_MAX: usize = 128;
/// Of zstd: columns of what hardly differs gain nothing by a higher one.
const LEVEL: i32 = 1;
/// The most bytes that the blocks of a bucket may claim to hold.
const BLOCKS_BYTES_MAX: usize = 17 * 1024 * 1024;
/// Bytes of a block that are unpacked and validated in one unit of work.
const BYTES_A_UNIT: usize = 64;
const PLAIN: u8 = 1;
const COLUMNS: u8 = 2;
const HEAD: usize = 9;
/// The most fields that `control` speaks of, and bytes of such a field: a bucket takes hardly more room than its rows.
const CONTROL_FIELDS_MAX: usize = 256;
const CONTROL_FIELD_BYTES_MAX: usize = 512;

thread_local! {
    /// Its tables take longer to set up than a block takes to be packed.
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// A measurement, divided.
pub struct Measurement {
    pub time: i64,
    pub row: DocBuf,
    /// `{meta: value}` with the fields of documents in order; empty without a value.
    pub meta: DocBuf,
}

/// Divides a measurement that has its `_id` first.
///
/// # Errors
/// BadValue (2) when its time is missing or no date.
pub fn split(measurement: Doc<'_>, options: &Options) -> Result<Measurement> {
    let time = valid_time(measurement, options)?;
    let meta_name = options.meta.as_deref();
    let meta = DocWriter::build(|w| write_meta(w, measurement, options));
    // A collection whose meta field is its time, or `_id`, keeps both in the row as well.
    let moved = |name: &str| Some(name) == meta_name && name != options.time;
    let row =
        DocWriter::build(|w| measurement.iter().filter(|e| !moved(e.name())).for_each(|e| w.element(&e)));
    Ok(Measurement { time, row, meta })
}

/// What a shard key can say of the bucket that a measurement would begin: its meta, and its least time.
///
/// # Errors
/// As [`split`].
pub fn key_fields(measurement: Doc<'_>, options: &Options) -> Result<DocBuf> {
    let least = options.rounded(valid_time(measurement, options)?);
    Ok(DocWriter::build(|w| {
        w.document_with("control", |w| {
            w.document_with("min", |w| w.value(&options.time, ValueRef::DateTime(least)));
        });
        write_meta(w, measurement, options);
    }))
}

fn valid_time(measurement: Doc<'_>, options: &Options) -> Result<i64> {
    match measurement.get(&options.time) {
        Some(ValueRef::DateTime(time)) => Ok(time),
        _ => {
            bail!(BAD_VALUE, "'{}' must be present and contain a valid BSON UTC datetime value", options.time)
        }
    }
}

fn write_meta(w: &mut DocWriter<'_>, measurement: Doc<'_>, options: &Options) {
    match options.meta.as_deref().and_then(|name| measurement.get(name)) {
        Some(value) if !is_sorted(value) => sorted(value.to_value()).write(w, "meta"),
        Some(value) => w.value("meta", value),
        None => {}
    }
}

/// Whether the fields of documents are in the order of their names, as they mostly are.
fn is_sorted(v: ValueRef<'_>) -> bool {
    match v {
        ValueRef::Document(d) => {
            d.iter().map(|e| e.name_bytes()).is_sorted() && d.iter().all(|e| is_sorted(e.value()))
        }
        ValueRef::Array(list) => list.iter().all(|e| is_sorted(e.value())),
        _ => true,
    }
}

/// Documents that differ only in the order of their fields are one meta.
fn sorted(v: Value) -> Value {
    match v {
        Value::Document(d) => {
            let mut fields: Vec<_> = d.0.into_iter().map(|(name, v)| (name, sorted(v))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Document(Document(fields))
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// What a bucket can still take.
pub struct Room {
    pub rows: usize,
    pub bytes: usize,
}

/// The room of a bucket for measurements of this meta and window; none when it is full or another's.
pub fn room(bucket: Doc<'_>, meta: Doc<'_>, window: i64, options: &Options) -> Option<Room> {
    let control = bucket.get_document("control")?;
    let ValueRef::DateTime(first) = control.get_document("min")?.get(&options.time)? else { return None };
    let same_meta = match (bucket.element("meta"), meta.element("meta")) {
        (Some(a), Some(b)) => a.tag() == b.tag() && a.value_bytes() == b.value_bytes(),
        (None, None) => true,
        _ => false,
    };
    // The least time is rounded, and so may lie before the window; a time of the bucket itself does not.
    let ValueRef::DateTime(last) = control.get_document("max")?.get(&options.time)? else { return None };
    let same_window = options.window(last) == window && options.rounded(last) >= first;
    // Where windows are as long as what times are rounded to, the least time is that of the window.
    let same_window =
        same_window && (options.span_seconds > options.rounding_seconds || options.window(first) == window);
    if !same_meta || !same_window || control.get_i64("version") != Some(i64::from(VERSION)) {
        return None;
    }
    let number = |name: &str| usize::try_from(control.get_i64(name)?).ok();
    let rows = ROWS_MAX.checked_sub(number("count")?)?;
    let bytes = BYTES_MAX.checked_sub(number("bytes")?)?;
    (rows > 0 && bytes > 0).then_some(Room { rows, bytes })
}

/// A bucket in the making.
struct Draft<'a> {
    id: ObjectId,
    meta: Doc<'a>,
    control: Control,
    count: usize,
    bytes: usize,
    blocks: Vec<Vec<u8>>,
    tail: Vec<Doc<'a>>,
}

/// A bucket of these rows, all of one meta and one window.
///
/// # Errors
/// InternalError (1) when nothing can be compressed, for want of memory.
pub fn build(id: ObjectId, meta: Doc<'_>, rows: &[Doc<'_>], options: &Options) -> Result<DocBuf> {
    let mut draft = Draft { id, meta, ..Draft::empty() };
    draft.add(rows, options)?;
    Ok(draft.write())
}

/// The bucket with more rows.
///
/// # Errors
/// InvalidBSON (22), where it is not what this file writes.
pub fn append(bucket: Doc<'_>, more: &[Doc<'_>], options: &Options) -> Result<DocBuf> {
    let control = bucket.get_document("control").unwrap_or(Doc::empty());
    let data = bucket.get_document("data").unwrap_or(Doc::empty());
    let number = |name: &str| control.get_i64(name).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let ValueRef::ObjectId(id) = bucket.get("_id").unwrap_or(ValueRef::Null) else { return Err(damaged()) };
    let meta = DocWriter::build(|w| bucket.element("meta").iter().for_each(|e| w.element(e)));
    let mut draft = Draft {
        id,
        meta: meta.doc(),
        control: Control::of(control),
        count: number("count"),
        bytes: number("bytes"),
        blocks: Vec::new(),
        tail: tail_of(data).collect(),
    };
    for block in blocks_of(data) {
        draft.blocks.push(block?.to_vec());
    }
    draft.add(more, options)?;
    Ok(draft.write())
}

/// The bucket with these rows in place of its own. Its least time stays, which may be a part of its shard key.
///
/// # Errors
/// As [`append`].
pub fn rebuilt(bucket: Doc<'_>, rows: &[Doc<'_>], options: &Options) -> Result<DocBuf> {
    let ValueRef::ObjectId(id) = bucket.get("_id").unwrap_or(ValueRef::Null) else { return Err(damaged()) };
    let meta = DocWriter::build(|w| bucket.element("meta").iter().for_each(|e| w.element(e)));
    let mut draft = Draft { id, meta: meta.doc(), ..Draft::empty() };
    let least = bucket.get_document("control").and_then(|c| c.get_document("min")?.element(&options.time));
    if let Some(least) = least {
        let at = draft.control.push(&options.time);
        draft.control.fields[at].1[MIN] = Some(least.value().to_value());
    }
    draft.add(rows, options)?;
    Ok(draft.write())
}

impl<'a> Draft<'a> {
    fn empty() -> Draft<'a> {
        Draft {
            id: ObjectId([0; 12]),
            meta: Doc::empty(),
            control: Control::default(),
            count: 0,
            bytes: 0,
            blocks: Vec::new(),
            tail: Vec::new(),
        }
    }
    fn add(&mut self, rows: &[Doc<'a>], options: &Options) -> Result<()> {
        for row in rows {
            self.count += 1;
            self.bytes += row.bytes().len();
            self.control.note(*row, options);
            self.tail.push(*row);
        }
        let full = self.count >= ROWS_MAX || self.bytes >= BYTES_MAX;
        if self.tail.len() >= TAIL_MAX || (full && self.tail.len() > 1) {
            self.blocks.push(pack(&self.tail)?);
            self.tail.clear();
        }
        Ok(())
    }

    fn write(&self) -> DocBuf {
        DocWriter::build(|w| {
            w.object_id("_id", self.id);
            w.document_with("control", |w| {
                w.i32("version", VERSION);
                w.document_with("min", |w| self.control.write_side(MIN, w));
                w.document_with("max", |w| self.control.write_side(MAX, w));
                w.i32("count", self.count as i32);
                w.i32("bytes", i32::try_from(self.bytes).unwrap_or(i32::MAX));
            });
            self.meta.iter().for_each(|e| w.element(&e));
            w.document_with("data", |w| {
                if !self.blocks.is_empty() {
                    w.array_with("blocks", |w| {
                        for (i, block) in self.blocks.iter().enumerate() {
                            w.with_index(i, |w, name| w.binary(name, 0, block));
                        }
                    });
                }
                if !self.tail.is_empty() {
                    w.array_with("tail", |w| {
                        for (i, row) in self.tail.iter().enumerate() {
                            w.with_index(i, |w, name| w.document(name, *row));
                        }
                    });
                }
            });
        })
    }
}

/// The sides of a field in [`Control`].
const MIN: usize = 0;
const MAX: usize = 1;

/// The least and the greatest values of fields.
#[derive(Default)]
struct Control {
    fields: Vec<(String, [Option<Value>; 2])>,
    /// Where the first so many of the fields stand.
    places: HashMap<String, usize>,
}

impl Control {
    fn of(control: Doc<'_>) -> Control {
        let mut out = Control::default();
        for (side, name) in [(MIN, "min"), (MAX, "max")] {
            for (i, e) in control.get_document(name).unwrap_or(Doc::empty()).iter().enumerate() {
                let at = out.place(&e, i).unwrap_or_else(|| out.push(e.name()));
                out.fields[at].1[side] = Some(e.value().to_value());
            }
        }
        out
    }

    /// Where a field stands; rows mostly have their fields in the same order, so it is looked for at `near` first.
    fn place(&mut self, e: &Element<'_>, near: usize) -> Option<usize> {
        if self.fields.get(near).is_some_and(|(known, _)| known.as_bytes() == e.name_bytes()) {
            return Some(near);
        }
        for at in self.places.len()..self.fields.len() {
            self.places.insert(self.fields[at].0.clone(), at);
        }
        self.places.get(e.name()).copied()
    }

    fn push(&mut self, name: &str) -> usize {
        self.fields.push((name.to_string(), [None, None]));
        self.fields.len() - 1
    }

    /// Takes a row into the least and greatest values.
    fn note(&mut self, row: Doc<'_>, options: &Options) {
        let mut next = 0;
        for e in row.iter().filter(|e| e.name_bytes() != b"_id") {
            let (is_time, value) = (e.name_bytes() == options.time.as_bytes(), e.value());
            let least = match value {
                ValueRef::DateTime(time) if is_time => ValueRef::DateTime(options.rounded(time)),
                ValueRef::Array(_) | ValueRef::Document(_) => continue,
                _ if e.whole().len() > CONTROL_FIELD_BYTES_MAX => continue,
                plain => plain,
            };
            let is_kept = is_time || self.fields.len() < CONTROL_FIELDS_MAX;
            let found = self.place(&e, next);
            let Some(at) = found.or_else(|| is_kept.then(|| self.push(e.name()))) else { continue };
            next = at + 1;
            let sides = &mut self.fields[at].1;
            extend(&mut sides[MIN], least, Ordering::Less);
            extend(&mut sides[MAX], value, Ordering::Greater);
        }
    }

    fn write_side(&self, side: usize, w: &mut DocWriter<'_>) {
        let known = self.fields.iter().filter_map(|(name, sides)| Some((name, sides[side].as_ref()?)));
        known.for_each(|(name, value)| value.write(w, name));
    }
}

fn extend(side: &mut Option<Value>, value: ValueRef<'_>, wanted: Ordering) {
    let beyond = match (&*side, value) {
        (None, _) => true,
        (Some(Value::DateTime(a)), ValueRef::DateTime(b)) => b.cmp(a) == wanted,
        (Some(Value::Double(a)), ValueRef::Double(b)) if !a.is_nan() && !b.is_nan() => {
            b.partial_cmp(a) == Some(wanted)
        }
        (Some(Value::Int32(a)), ValueRef::Int32(b)) => b.cmp(a) == wanted,
        (Some(Value::Int64(a)), ValueRef::Int64(b)) => b.cmp(a) == wanted,
        (Some(Value::String(a)), ValueRef::String(b)) => b.cmp(a.as_str()) == wanted,
        (Some(known), value) => {
            known.to_holder().get("").is_some_and(|known| compare(value, known) == wanted)
        }
    };
    if beyond {
        *side = Some(value.to_value());
    }
}

fn damaged() -> document::Error {
    err!(INVALID_BSON, "a bucket of a time-series collection does not hold what it says")
}

fn blocks_of(data: Doc<'_>) -> impl Iterator<Item = Result<&[u8]>> {
    let list = data.get("blocks").and_then(|v| v.as_array()).unwrap_or(Doc::empty());
    list.iter().map(|e| match e.value() {
        ValueRef::Binary(_, bytes) => Ok(bytes),
        _ => Err(damaged()),
    })
}

fn tail_of(data: Doc<'_>) -> impl Iterator<Item = Doc<'_>> {
    let list = data.get("tail").and_then(|v| v.as_array()).unwrap_or(Doc::empty());
    list.iter().filter_map(|e| e.value().as_document())
}

/// The rows of a bucket in the order they came.
///
/// # Errors
/// InvalidBSON (22) where a block does not hold what it says, NotImplemented (238) for buckets of the real server.
pub fn rows(bucket: Doc<'_>) -> Result<Vec<DocBuf>> {
    let version = bucket.get_document("control").and_then(|c| c.get_i64("version"));
    if version != Some(i64::from(VERSION)) {
        bail!(NOT_IMPLEMENTED, "buckets of version {version:?} are not implemented");
    }
    let data = bucket.get_document("data").unwrap_or(Doc::empty());
    let mut out = Vec::new();
    let mut room = BLOCKS_BYTES_MAX;
    for block in blocks_of(data) {
        unpack_block(block?, &mut room, &mut out)?;
    }
    out.extend(tail_of(data).map(Doc::to_owned));
    Ok(out)
}

/// The measurement of a row: time, meta, and the rest.
pub fn measurement(row: Doc<'_>, bucket: Doc<'_>, options: &Options) -> DocBuf {
    DocWriter::build(|w| {
        let first = row.element(&options.time);
        first.iter().for_each(|e| w.element(e));
        let meta = options.meta.as_deref().filter(|name| *name != options.time);
        if let (Some(name), Some(e)) = (meta, bucket.element("meta")) {
            w.element_as(name, &e);
        }
        row.iter().filter(|e| e.name() != options.time).for_each(|e| w.element(&e));
    })
}

/// The rows of a bucket by time.
///
/// # Errors
/// Those of [`rows`].
pub fn rows_by_time(bucket: Doc<'_>, options: &Options) -> Result<Vec<DocBuf>> {
    let mut rows = rows(bucket)?;
    rows.sort_by_key(|row| time_of(row.doc(), options));
    Ok(rows)
}

fn time_of(row: Doc<'_>, options: &Options) -> i64 {
    match row.get(&options.time) {
        Some(ValueRef::DateTime(time)) => time,
        _ => i64::MIN,
    }
}

fn pack(rows: &[Doc<'_>]) -> Result<Vec<u8>> {
    let total: usize = rows.iter().map(|r| r.bytes().len()).sum();
    let width = rows.first().map_or(0, |r| r.bytes().len());
    let even = rows.iter().all(|r| r.bytes().len() == width);
    let mut raw = Vec::with_capacity(total);
    match even {
        true => (0..width).for_each(|j| {
            let mut before = 0u8;
            raw.extend(rows.iter().map(|row| {
                let byte = row.bytes()[j];
                let difference = byte.wrapping_sub(before);
                before = byte;
                difference
            }));
        }),
        false => rows.iter().for_each(|r| raw.extend_from_slice(r.bytes())),
    }
    let mut out = vec![if even { COLUMNS } else { PLAIN }];
    out.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    out.extend_from_slice(&(total as u32).to_le_bytes());
    let packed = PACKER.with_borrow_mut(|packer| match packer {
        Some(packer) => packer.compress(&raw),
        None => packer.insert(Compressor::new(LEVEL)?).compress(&raw),
    });
    out.extend_from_slice(&packed.map_err(|e| err!(INTERNAL_ERROR, "cannot compress {total} bytes: {e}"))?);
    Ok(out)
}

/// Unpacks a block of at most `room` bytes, of which it takes its own.
fn unpack_block(block: &[u8], room: &mut usize, out: &mut Vec<DocBuf>) -> Result<()> {
    let number = |at: usize| -> Result<usize> {
        let bytes = block.get(at..at + 4).and_then(|b| b.try_into().ok()).ok_or_else(damaged)?;
        Ok(u32::from_le_bytes(bytes) as usize)
    };
    let (kind, count, total) = (block.first().copied().ok_or_else(damaged)?, number(1)?, number(5)?);
    if out.len() + count > ROWS_MAX {
        return Err(damaged());
    }
    *room = room.checked_sub(total).ok_or_else(damaged)?;
    meter::spend(count + total / BYTES_A_UNIT)?;
    let raw = zstd::bulk::decompress(&block[HEAD..], total).map_err(|_| damaged())?;
    if raw.len() != total {
        return Err(damaged());
    }
    match kind {
        PLAIN => plain_rows(&raw, count, out),
        COLUMNS if count > 0 && total.is_multiple_of(count) => column_rows(&raw, count, out),
        _ => Err(damaged()),
    }
}

fn plain_rows(raw: &[u8], count: usize, out: &mut Vec<DocBuf>) -> Result<()> {
    let mut rest = raw;
    for _ in 0..count {
        let length = rest.first_chunk::<4>().map(|head| i32::from_le_bytes(*head));
        let length = length.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= rest.len());
        let (row, after) = rest.split_at(length.ok_or_else(damaged)?);
        push_row(row.to_vec(), out)?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(damaged()) }
}

fn column_rows(raw: &[u8], count: usize, out: &mut Vec<DocBuf>) -> Result<()> {
    let width = raw.len() / count;
    let mut rows = vec![vec![0u8; width]; count];
    for (j, column) in raw.chunks_exact(count).enumerate() {
        let mut before = 0u8;
        for (row, difference) in rows.iter_mut().zip(column) {
            before = before.wrapping_add(*difference);
            row[j] = before;
        }
    }
    rows.into_iter().try_for_each(|row| push_row(row, out))
}

fn push_row(row: Vec<u8>, out: &mut Vec<DocBuf>) -> Result<()> {
    validate(&row, Limits::INTERNAL).map_err(|_| damaged())?;
    out.push(DocBuf::from_validated(row));
    Ok(())
}
