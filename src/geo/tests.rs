//! Shapes read from BSON, what lies in them, and the cells they are kept under.

use super::*;
use crate::cells::{Grid, Layout, Levels};
use crate::flat::Flat;
use crate::region::stored;
use document::{Document, Value, array, doc};

fn read(d: Document) -> document::Result<Geometry> {
    geojson::read(d.to_doc_buf().doc())
}

fn geometry(d: Document) -> Geometry {
    read(d).expect("a geometry")
}

fn point(x: f64, y: f64) -> Geometry {
    geometry(doc! { "type": "Point", "coordinates": [x, y] })
}

/// A square around the origin with a square hole.
fn frame(half: f64, hole: f64) -> Geometry {
    let ring = |h: f64| array![[(-h), (-h)], [h, (-h)], [h, h], [(-h), h], [(-h), (-h)]];
    geometry(doc! { "type": "Polygon", "coordinates": [(ring(half)), (ring(hole))] })
}

#[test]
fn a_line_without_length_is_where_its_point_is() {
    let region = Region::Sphere(Box::new(frame(10.0, 1.0)));
    let line = |a: [f64; 2], b: [f64; 2]| {
        geometry(doc! { "type": "LineString", "coordinates": [[a[0], a[1]], [b[0], b[1]]] })
    };
    // Every meridian ends at the pole.
    assert!(!region.contains(&line([0.0, 90.0], [50.0, 90.0])));
    assert!(!region.contains(&line([0.0, -90.0], [-1.0, -90.0])));
    assert!(region.contains(&line([5.0, 5.0], [5.0, 5.001])));
}

#[test]
fn a_polygon_holds_what_is_in_it_and_not_in_its_holes() {
    let region = Region::Sphere(Box::new(frame(10.0, 1.0)));
    assert!(region.contains(&point(5.0, 5.0)));
    assert!(!region.contains(&point(0.0, 0.0)));
    assert!(!region.contains(&point(50.0, 5.0)));
    let line = |a: f64, b: f64| geometry(doc! { "type": "LineString", "coordinates": [[a, 5.0], [b, 5.0]] });
    assert!(region.contains(&line(2.0, 4.0)));
    assert!(!region.contains(&line(2.0, 40.0)));
    assert!(region.meets(&line(2.0, 40.0)));
    assert!(!region.meets(&line(20.0, 40.0)));
}

#[test]
fn distances_are_on_the_great_circle() {
    let degree = point(0.0, 1.0).distance(geometry::sphere_point((0.0, 0.0))) * EARTH_RADIUS_M;
    assert!((degree - 111_318.845).abs() < 0.01, "{degree}");
}

#[test]
fn faulty_geometries_are_refused() {
    let polygon = |ring: Value| read(doc! { "type": "Polygon", "coordinates": [(ring)] });
    for (why, result) in [
        ("open", polygon(array![[0, 0], [1, 0], [1, 1], [0, 1]])),
        ("crossing", polygon(array![[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]])),
        ("two points", polygon(array![[0, 0], [1, 0], [0, 0]])),
        ("range", read(doc! { "type": "Point", "coordinates": [181, 0] })),
        ("type", read(doc! { "type": "Feature", "coordinates": [1, 0] })),
        ("nothing", read(doc! { "type": "LineString", "coordinates": [] })),
        ("no geometries", read(doc! { "type": "GeometryCollection", "geometries": [] })),
    ] {
        assert_eq!(result.map_err(|e| e.code).err(), Some(2), "{why}");
    }
}

#[test]
fn legacy_points_are_pairs_of_numbers() {
    let of = |v: Value| stored(v.to_holder().doc().get("").expect("a value")).unwrap().and_then(|g| g.flat);
    assert_eq!(of(array![1, 2.5]), Some((1.0, 2.5)));
    assert_eq!(of(doc! { "lng": 3, "lat": 4 }.into()), Some((3.0, 4.0)));
    assert_eq!(of(array!["a", 2]), None);
    assert_eq!(of(Value::Int32(7)), None);
}

/// Whatever a region contains is kept under a cell that the region's ranges hold.
#[test]
fn ranges_of_a_region_hold_the_cells_of_what_meets_it() {
    let levels = Levels::default();
    let regions = [
        Region::around(geometry::sphere_point((10.0, 45.0)), 0.1),
        Region::Sphere(Box::new(frame(20.0, 1.0))),
    ];
    let mut met = 0;
    for region in &regions {
        let ranges = levels.ranges(region);
        for x in -30..30 {
            for y in -30..60 {
                let g = point(f64::from(x), f64::from(y));
                if region.meets(&g) {
                    met += 1;
                    let cells = levels.of(&g).unwrap();
                    assert!(cells.iter().all(|c| ranges.iter().any(|r| r.contains(c))), "{x} {y}");
                }
            }
        }
    }
    assert!(met > 500, "{met}");
}

#[test]
fn ranges_of_a_box_hold_its_cells() {
    let grid = Grid::default();
    let shape = Flat::of_corners((-3.5, 2.0), (7.25, 40.0));
    let ranges = Layout::Plane(grid).ranges(&Region::Flat(shape.clone())).expect("ranges");
    assert!(ranges.len() > 1 && ranges.len() <= 70, "{}", ranges.len());
    let mut outside = 0;
    for x in -20..20 {
        for y in -20..60 {
            let p = (f64::from(x) + 0.125, f64::from(y) + 0.125);
            let cell = grid.cell(p).expect("in the grid");
            let found = ranges.iter().any(|r| r.contains(&cell));
            assert!(found || !shape.contains(p), "{p:?}");
            outside += usize::from(found && !shape.contains(p));
        }
    }
    assert!(outside < 200, "the ranges hold {outside} points that the box does not");
}

#[test]
fn points_outside_the_grid_have_no_cell() {
    assert_eq!(Grid::default().cell((180.5, 0.0)), None);
    assert!(Grid { min: 0.0, max: 1000.0, bits: 32 }.cell((999.9, 0.0)).is_some());
}
