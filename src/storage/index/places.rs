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

use super::keys::{Met, for_each_plain_key};
use super::spec::{FieldKind, IndexSpec};

/// Calls `f` with the components of each key of `doc`. Tells whether there may be several, and of the arrays met.
///
/// # Errors
/// 16755 for a value that is no place, 13027 for a point outside the grid, and those of the other fields.
pub(super) fn for_each_key<'d>(
    spec: &IndexSpec,
    layout: &Layout,
    doc: Doc<'d>,
    f: &mut dyn FnMut(&[ValueRef<'d>]),
) -> Result<Met> {
    let mut arrays = MultikeyPaths::default();
    let mut cells: Vec<Vec<i64>> = Vec::new();
    for (at, field) in spec.fields().iter().enumerate().filter(|(_, field)| field.kind.is_place()) {
        let mut found = Vec::new();
        let mut note = |name| arrays.note(at, name);
        match field.kind {
            FieldKind::MeasuredPlace => {
                for row in series::bucket::rows(doc)? {
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
        combine(spec, &cells, plain, &mut components, f);
    })?;
    let plain = spec.fields().iter().enumerate().filter(|(_, field)| !field.kind.is_place());
    arrays.merge(&plain_arrays.renumbered(plain.map(|(at, _)| at)));
    let met = Met::of_arrays(arrays);
    Ok(Met { multikey: met.multikey || several, ..met })
}

/// Puts cells and plain components in the order of the index's fields, in every combination.
fn combine<'d>(
    spec: &IndexSpec,
    cells: &[Vec<i64>],
    plain: &[ValueRef<'d>],
    components: &mut Vec<ValueRef<'d>>,
    f: &mut dyn FnMut(&[ValueRef<'d>]),
) {
    let Some(field) = spec.fields().get(components.len()) else { return f(components) };
    let before = &spec.fields()[..components.len()];
    let places = before.iter().filter(|field| field.kind.is_place()).count();
    if field.kind.is_place() {
        // One of several places may be missing.
        let none = [None];
        let some: Vec<Option<i64>> = cells[places].iter().copied().map(Some).collect();
        for cell in if some.is_empty() { &none[..] } else { &some[..] } {
            components.push(cell.map_or(ValueRef::Null, ValueRef::Int64));
            combine(spec, cells, plain, components, f);
            components.pop();
        }
    } else {
        components.push(plain[before.len() - places]);
        combine(spec, cells, plain, components, f);
        components.pop();
    }
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

/// The cells of one field. On the plane it may hold an array of points.
fn cells_of(layout: &Layout, v: ValueRef<'_>, doc: Doc<'_>, out: &mut Vec<i64>) -> Result<()> {
    match (layout, v) {
        (_, ValueRef::Null | ValueRef::Undefined) => Ok(()),
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
