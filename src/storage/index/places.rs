//! The keys of a document in a `2dsphere` or `2d` index.
//!
//! A field of such a kind holds a place: GeoJSON or a legacy point; in a `2d` index also an array of points. Each gives the ids of the cells it
//! is kept under ([`geo::cells`]); the other fields of the index give their keys as in any index, and a document has
//! every combination. A document without a place is not in the index.
//!
//! Of a bucket (crate `series`) a `2dsphere_bucket` index has the places of all measurements: `data.loc` is their field `loc`.

use document::multikey::MultikeyPaths;
use document::path::is_position;
use document::{Doc, Result, ValueRef, bail, codes};
use geo::cells::Layout;
use geo::region::is_geojson;
use geo::{Geometry, geojson, legacy};

use super::keys::{Emit, Met, for_each_plain_key, same_at_path};
use super::spec::{FieldKind, IndexSpec};

/// Calls `f` with the components of each key of `doc`. Tells whether there may be several, and of the arrays met.
///
/// # Errors
/// 16755 for a value that is no place, 13027 for a point outside the grid, and those of the other fields.
pub(super) fn for_each_key<'d>(
    spec: &IndexSpec,
    layout: &Layout,
    doc: Doc<'d>,
    f: &mut Emit<'_, 'd>,
) -> Result<Met> {
    for_each_key_behind(spec, layout, doc, 0, f)
}

/// As [`for_each_key`], but of a bucket's measurements only those behind the first so many.
fn for_each_key_behind<'d>(
    spec: &IndexSpec,
    layout: &Layout,
    doc: Doc<'d>,
    rows_passed: usize,
    f: &mut Emit<'_, 'd>,
) -> Result<Met> {
    let mut arrays = MultikeyPaths::default();
    let mut cells: Vec<Vec<i64>> = Vec::new();
    for (at, field) in spec.fields().iter().enumerate().filter(|(_, field)| field.kind.is_place()) {
        let mut found = Vec::new();
        let mut note = |name| arrays.note(at, name);
        match field.kind {
            FieldKind::MeasuredPlace => {
                for row in series::bucket::rows(doc)?.into_iter().skip(rows_passed) {
                    note(0);
                    let mut take = |v: ValueRef<'_>| cells_of(layout, v, row.doc(), &mut found);
                    values_at(row.doc(), &field.names, 1, &mut note, &mut take)?;
                }
            }
            _ => values_at(doc, &field.names, 0, &mut note, &mut |v| cells_of(layout, v, doc, &mut found))?,
        }
        found.sort_unstable();
        found.dedup();
        cells.push(found);
    }
    if cells.iter().all(Vec::is_empty) {
        return Ok(Met::default());
    }
    let several = cells.iter().any(|c| c.len() > 1);
    let plain_arrays = for_each_plain_key(spec.plain_fields(), false, doc, &mut |plain| {
        let mut components = Vec::with_capacity(spec.fields().len());
        combine(spec, &cells, plain, &mut components, f)
    })?;
    let plain = spec.fields().iter().enumerate().filter(|(_, field)| !field.kind.is_place());
    arrays.merge(&plain_arrays.renumbered(plain.map(|(at, _)| at)));
    let met = Met::of_arrays(arrays);
    Ok(Met { multikey: met.multikey || several, ..met })
}

/// Calls `f` with the components of those keys of `new` that `old`, which it has grown out of, may lack. False, and nothing is called, where
/// more than that may differ.
///
/// Finding the cells of all measurements takes long, and a bucket is written again for each few that come to it.
pub(super) fn for_each_grown_key<'d>(
    spec: &IndexSpec,
    layout: &Layout,
    (old, new): (Doc<'_>, Doc<'d>),
    f: &mut Emit<'_, 'd>,
) -> Result<Option<Met>> {
    // Of several places a document has every combination.
    let mut places = spec.fields().iter().filter(|field| field.kind.is_place()).map(|field| field.kind);
    let alone = places.next() == Some(FieldKind::MeasuredPlace) && places.next().is_none();
    if !alone || !spec.plain_fields().iter().all(|field| same_at_path(&field.names, old, new)) {
        return Ok(None);
    }
    let (before, after) = (series::bucket::rows(old)?, series::bucket::rows(new)?);
    if !after.starts_with(&before) {
        return Ok(None);
    }
    for_each_key_behind(spec, layout, new, before.len(), f).map(Some)
}

/// Puts cells and plain components in the order of the index's fields, in every combination.
fn combine<'d>(
    spec: &IndexSpec,
    cells: &[Vec<i64>],
    plain: &[ValueRef<'d>],
    components: &mut Vec<ValueRef<'d>>,
    f: &mut Emit<'_, 'd>,
) -> Result<()> {
    let Some(field) = spec.fields().get(components.len()) else { return f(components) };
    let before = &spec.fields()[..components.len()];
    let places = before.iter().filter(|field| field.kind.is_place()).count();
    if field.kind.is_place() {
        // One of several places may be missing.
        let none = [None];
        let some: Vec<Option<i64>> = cells[places].iter().copied().map(Some).collect();
        for cell in if some.is_empty() { &none[..] } else { &some[..] } {
            components.push(cell.map_or(ValueRef::Null, ValueRef::Int64));
            combine(spec, cells, plain, components, f)?;
            components.pop();
        }
    } else {
        components.push(plain[before.len() - places]);
        combine(spec, cells, plain, components, f)?;
        components.pop();
    }
    Ok(())
}

/// Calls `f` with each value at a path from its name at `at`, through arrays on the way, of which `note` hears; an array at its end is one value.
/// A number that is a position of an array leads to that element alone, as in an index of plain keys.
fn values_at<'d>(
    doc: Doc<'d>,
    names: &[String],
    at: usize,
    note: &mut dyn FnMut(usize),
    f: &mut dyn FnMut(ValueRef<'d>) -> Result<()>,
) -> Result<()> {
    let Some(name) = names.get(at) else { return Ok(()) };
    match (doc.get(name), at + 1 == names.len()) {
        (Some(v), true) => f(v),
        (Some(ValueRef::Document(inner)), false) => values_at(inner, names, at + 1, note, f),
        (Some(ValueRef::Array(items)), false) => {
            note(at);
            if is_position(&names[at + 1])
                && let Some(element) = items.get(&names[at + 1])
            {
                return match (element, at + 2 == names.len()) {
                    (v, true) => f(v),
                    (ValueRef::Document(inner) | ValueRef::Array(inner), false) => {
                        values_at(inner, names, at + 2, note, f)
                    }
                    _ => Ok(()),
                };
            }
            for e in items.iter() {
                if let ValueRef::Document(inner) = e.value() {
                    values_at(inner, names, at + 1, note, f)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The cells of one field. What is empty has none, and on the plane it may hold an array of points.
fn cells_of(layout: &Layout, v: ValueRef<'_>, doc: Doc<'_>, out: &mut Vec<i64>) -> Result<()> {
    match (layout, v) {
        (_, ValueRef::Null | ValueRef::Undefined) => Ok(()),
        (_, ValueRef::Document(d) | ValueRef::Array(d)) if d.is_empty() => Ok(()),
        (Layout::Plane(_), ValueRef::Array(items)) if legacy::point(v).is_none() => {
            items.iter().try_for_each(|e| one(layout, e.value(), doc, out))
        }
        _ => one(layout, v, doc, out),
    }
}

fn one(layout: &Layout, v: ValueRef<'_>, doc: Doc<'_>, out: &mut Vec<i64>) -> Result<()> {
    match layout {
        Layout::Sphere(levels) => {
            if let ValueRef::Document(d) = v
                && is_geojson(d)
            {
                let geometry = match geojson::read(d) {
                    Ok(geometry) => geometry,
                    Err(e) if e.code == codes::BAD_VALUE => return no_place(doc, &e.message),
                    Err(ended) => return Err(ended),
                };
                if geojson::is_strict(d) {
                    return no_place(doc, "big polygons cannot be indexed");
                }
                out.extend(levels.of(&geometry)?);
                return Ok(());
            }
            let on_sphere =
                |(lng, lat): &legacy::Pair| (-180.0..=180.0).contains(lng) && (-90.0..=90.0).contains(lat);
            match legacy::point(v).filter(on_sphere) {
                Some(point) => out.extend(levels.of(&Geometry::of_point(point))?),
                None => return no_place(doc, ""),
            }
        }
        Layout::Plane(grid) => {
            let Some(point) = legacy::point(v) else {
                bail!(13654, "location object expected, location array not in correct format");
            };
            match grid.cell(point) {
                Some(cell) => out.push(cell),
                None => bail!(
                    13027,
                    "point not in interval of [ {}, {} ] :: caused by :: {}",
                    grid.min,
                    grid.max,
                    document::shell::document(&doc.to_document())
                ),
            }
        }
    }
    Ok(())
}

fn no_place(doc: Doc<'_>, why: &str) -> Result<()> {
    bail!(16755, "Can't extract geo keys: {}  {why}", document::shell::document(&doc.to_document()))
}

#[cfg(test)]
mod tests {
    use crate::index::{IndexSpec, no_partial_indexes};
    use crate::snapshot::CollectionView;
    use crate::{Collection, CollectionMeta};
    use document::{DocBuf, Document, ObjectId, Value, doc, meter};
    use series::{Options, bucket};

    /// A bucket's measurements, one of them around each place; every third has none.
    fn rows(count: i32) -> Vec<DocBuf> {
        let row = |i: i32| {
            let (lng, lat) = (f64::from(i % 60), f64::from(i % 7));
            let corners = [(0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0), (0.0, 0.0)];
            let ring = corners.map(|(x, y)| document::array![lng + x, lat + y]);
            let ring = Value::Array(ring.to_vec());
            let mut row = doc! { "t": Value::DateTime(i64::from(i)), "_id": i };
            if i % 3 != 0 {
                row.push("p", doc! { "type": "Polygon", "coordinates": Value::Array(vec![ring]) });
            }
            row.to_doc_buf()
        };
        (0..count).map(row).collect()
    }

    /// In which the keys of measurements are told from one another.
    fn told_apart() -> Vec<Document> {
        vec![doc! { "data.p": "2dsphere_bucket" }, doc! { "meta": 1, "data.p": "2dsphere_bucket" }]
    }

    fn collection(indexes: Vec<Document>) -> Collection {
        let mut collection = Collection::new(CollectionMeta::new("t.c", [1; 16]));
        for key in indexes {
            let name = key.keys().collect::<Vec<_>>().join("_");
            let document = doc! { "key": key, "name": name, "2dsphereIndexVersion": 3 };
            collection.create_index(IndexSpec::parse(&document, &no_partial_indexes).unwrap()).unwrap();
        }
        collection
    }

    fn built(rows: &[DocBuf]) -> DocBuf {
        let options = Options::of_document(&doc! { "timeField": "t", "metaField": "m" }).unwrap();
        let meta = doc! { "meta": [1, 2] }.to_doc_buf();
        let rows: Vec<_> = rows.iter().map(DocBuf::doc).collect();
        bucket::build(ObjectId::default(), meta.doc(), &rows, &options).unwrap()
    }

    fn entries(collection: &Collection, slot: usize) -> Vec<Vec<u8>> {
        let snapshot = collection.snapshot();
        let mut cursor = snapshot.index_cursor(slot).unwrap();
        let (mut out, mut next) = (Vec::new(), cursor.first());
        while let Some(entry) = next {
            out.push(entry.key.to_vec());
            next = cursor.next();
        }
        out
    }

    /// A collection with a bucket that has grown, and the work of each step.
    fn grown(indexes: Vec<Document>, rows: &[DocBuf], steps: &[usize]) -> (Collection, Vec<i64>) {
        let (mut collection, mut work) = (collection(indexes), Vec::new());
        let plan = collection.prepare_insert(built(&rows[..steps[0]]).doc()).unwrap();
        let record = collection.insert(plan, built(&rows[..steps[0]]).doc());
        for &count in &steps[1..] {
            let new = built(&rows[..count]);
            let plan = meter::within(&mut meter::Oversight::default(), || {
                let plan = collection.prepare_update(record, new.doc());
                work.push(meter::spent());
                plan
            });
            collection.update(record, plan.unwrap(), new.doc());
        }
        (collection, work)
    }

    #[test]
    fn a_bucket_that_has_grown_has_the_keys_of_one_written_at_once() {
        let rows = rows(90);
        let mut indexes = told_apart();
        indexes.push(doc! { "control.max.t": -1, "data.p": "2dsphere_bucket" });
        indexes.push(doc! { "data.p": "2dsphere_bucket", "data.q": "2dsphere_bucket" });
        let at_once = grown(indexes.clone(), &rows, &[90]).0;
        // It shrinks on the way, too.
        let by_and_by = grown(indexes, &rows, &[1, 2, 3, 20, 10, 60, 61, 90]).0;
        for slot in 0..at_once.indexes().len() {
            let expected = entries(&at_once, slot);
            assert_eq!(entries(&by_and_by, slot), expected, "{slot}");
            assert!(!expected.is_empty(), "{slot}");
            assert_eq!(by_and_by.indexes()[slot].is_multikey(), at_once.indexes()[slot].is_multikey());
        }
    }

    #[test]
    fn a_measurement_that_comes_to_a_bucket_does_not_cost_what_all_of_it_do() {
        let rows = rows(200);
        let (_, work) = grown(told_apart(), &rows, &[1, 199, 200]);
        assert!(work[1] * 20 < work[0], "{work:?}");
    }
}
