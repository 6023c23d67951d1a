//! The cells of the sphere under which an index finds a geometry.
//!
//! A geometry is kept under each cell of its covering. A query looks, for each cell of its own covering, at that cell,
//! all cells inside it (one range of ids) and all cells that contain it.

use crate::Geometry;
use document::{Result, meter};
use s2rst::s2::CellId;
use s2rst::s2::Level;
use s2rst::s2::Region as S2Region;
use s2rst::s2::region_coverer::RegionCoverer;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// The coarsest and the finest level of cells, and the most of them for one geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    pub coarsest: u8,
    pub finest: u8,
    pub cells_max: usize,
}

impl Default for Levels {
    /// The real server's: cells of about 500 km to 500 m.
    fn default() -> Levels {
        Levels { coarsest: 0, finest: 23, cells_max: 20 }
    }
}

fn level(n: u8) -> Level {
    Level::try_from(n.min(30)).expect("a level is at most 30")
}

/// What a covering costs, in units of the meter, beside that of the vertices; and how often a line looks at all of its vertices for one.
const COVERING_UNITS: usize = 4000;
const COMPARED: usize = 20;

/// A region of more parts is covered by a few cells for each, which are larger than need be but take no time to find.
const CLOSELY_MAX: usize = 100;

/// The most cells in which an index is looked into.
const CELLS_MAX: usize = 2000;

/// Takes larger cells in place of many.
fn coarsen(cells: &mut Vec<CellId>) {
    let mut finest = 30;
    while cells.len() > CELLS_MAX && finest > 0 {
        finest -= 1;
        for cell in cells.iter_mut().filter(|cell| cell.level() > level(finest)) {
            *cell = cell.parent_at_level(level(finest));
        }
        cells.sort_unstable();
        cells.dedup();
    }
}

impl Levels {
    fn coverer(&self) -> RegionCoverer {
        RegionCoverer::new()
            .min_level(level(self.coarsest))
            .max_level(level(self.finest))
            .max_cells(self.cells_max)
    }

    /// The ids under which the geometry is kept, ascending.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub fn of(&self, g: &Geometry) -> Result<Vec<i64>> {
        let coverer = self.coverer();
        let mut ids: Vec<CellId> =
            g.points.iter().map(|p| CellId::from_point(p).parent_at_level(level(self.finest))).collect();
        let mut cover = |region: &dyn S2Region, vertices: usize| {
            meter::spend(COVERING_UNITS + vertices)?;
            ids.extend(coverer.covering(region).cell_ids().iter().copied());
            Ok(())
        };
        g.lines.iter().try_for_each(|l| cover(l, COMPARED * l.num_vertices()))?;
        g.polygons.iter().try_for_each(|p| cover(p, p.num_vertices()))?;
        let mut ids: Vec<i64> = ids.into_iter().map(|id| id.id() as i64).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// The ranges of ids under which whatever meets the region is kept.
    pub fn ranges(&self, region: &crate::Region) -> Vec<RangeInclusive<i64>> {
        let coverer = self.coverer();
        let mut cells = Vec::new();
        match region {
            crate::Region::Cap(cap) => cells.extend(coverer.covering(cap).cell_ids().iter().copied()),
            crate::Region::Sphere(g) => {
                cells.extend(
                    g.points.iter().map(|p| CellId::from_point(p).parent_at_level(level(self.finest))),
                );
                let closely = g.parts() <= CLOSELY_MAX;
                let mut cover = |region: &dyn S2Region| match closely {
                    true => cells.extend(coverer.covering(region).cell_ids().iter().copied()),
                    false => cells.extend(region.cell_union_bound()),
                };
                g.lines.iter().for_each(|l| cover(l));
                g.polygons.iter().for_each(|p| cover(p));
                coarsen(&mut cells);
            }
            crate::Region::Flat(_) => return vec![i64::MIN..=i64::MAX],
        }
        let (mut out, mut seen) = (Vec::new(), HashSet::new());
        for cell in cells {
            out.push(cell.range_min().id() as i64..=cell.range_max().id() as i64);
            let mut above = cell;
            while !above.is_face() {
                above = above.parent();
                if !seen.insert(above) {
                    break;
                }
                out.push(above.id() as i64..=above.id() as i64);
            }
        }
        out.sort_by_key(|r| (*r.start(), *r.end()));
        out.dedup();
        out
    }
}

/// The grid of a plane index: each axis from `min` to `max` in `2^bits` steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    pub min: f64,
    pub max: f64,
    pub bits: u8,
}

impl Default for Grid {
    fn default() -> Grid {
        Grid { min: -180.0, max: 180.0, bits: 26 }
    }
}

/// The most ranges that stand for a box of the plane.
const PLANE_RANGES_MAX: usize = 64;

impl Grid {
    /// The cell of a point: the bits of both axes, interleaved. `None` outside the grid.
    pub fn cell(&self, (x, y): crate::legacy::Pair) -> Option<i64> {
        let inside = |v: f64| (self.min..self.max).contains(&v);
        (inside(x) && inside(y)).then(|| interleaved(self.step(x), self.step(y)))
    }

    fn step(&self, v: f64) -> u32 {
        let steps = (1u64 << self.bits) as f64;
        let at = ((v - self.min) / (self.max - self.min) * steps).floor();
        at.clamp(0.0, steps - 1.0) as u32
    }

    /// The ranges of cells that a box touches.
    pub fn ranges(&self, (lo, hi): (crate::legacy::Pair, crate::legacy::Pair)) -> Vec<RangeInclusive<i64>> {
        let (lo, hi) = ((self.step(lo.0), self.step(lo.1)), (self.step(hi.0), self.step(hi.1)));
        let mut squares = vec![Square { x: 0, y: 0, bits: self.bits }];
        loop {
            // The largest square that is not wholly inside is divided, while there is room.
            let partly = |s: &Square| s.bits > 0 && !s.inside(lo, hi);
            let largest = squares.iter().enumerate().filter(|(_, s)| partly(s)).max_by_key(|(_, s)| s.bits);
            let Some((at, _)) = largest.filter(|_| squares.len() < PLANE_RANGES_MAX) else { break };
            let divided = squares.swap_remove(at).quarters();
            squares.extend(divided.into_iter().filter(|s| s.touches(lo, hi)));
        }
        let mut out: Vec<RangeInclusive<i64>> = squares.iter().map(Square::cells).collect();
        out.sort_by_key(|r| *r.start());
        out
    }
}

/// A square of `2^bits` steps on a side.
struct Square {
    x: u32,
    y: u32,
    bits: u8,
}

impl Square {
    fn last(&self) -> u32 {
        ((1u64 << self.bits) - 1) as u32
    }
    fn inside(&self, lo: (u32, u32), hi: (u32, u32)) -> bool {
        let within = |at: u32, lo: u32, hi: u32| lo <= at && at + self.last() <= hi;
        within(self.x, lo.0, hi.0) && within(self.y, lo.1, hi.1)
    }
    fn touches(&self, lo: (u32, u32), hi: (u32, u32)) -> bool {
        let meets = |at: u32, lo: u32, hi: u32| at <= hi && lo <= at + self.last();
        meets(self.x, lo.0, hi.0) && meets(self.y, lo.1, hi.1)
    }
    fn quarters(&self) -> [Square; 4] {
        let bits = self.bits - 1;
        let half = 1u32 << bits;
        let at = |x, y| Square { x: self.x + x, y: self.y + y, bits };
        [at(0, 0), at(0, half), at(half, 0), at(half, half)]
    }
    fn cells(&self) -> RangeInclusive<i64> {
        let first = interleaved(self.x, self.y);
        let span = (1u128 << (2 * u32::from(self.bits))) - 1;
        first..=(i128::from(first) + span as i128) as i64
    }
}

/// The bits of both, x first; ordered as a signed number.
fn interleaved(x: u32, y: u32) -> i64 {
    let bits = (0..32).fold(0u64, |out, i| {
        let pair = (u64::from(x >> i & 1) << 1) | u64::from(y >> i & 1);
        out | pair << (2 * i)
    });
    (bits ^ 1 << 63) as i64
}

/// How an index keeps places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// `2dsphere`.
    Sphere(Levels),
    /// `2d`.
    Plane(Grid),
}

impl Layout {
    /// Whether the index can tell where it keeps what meets the region.
    pub fn reads(&self, region: &crate::Region) -> bool {
        matches!(self, Layout::Plane(_)) == matches!(region, crate::Region::Flat(_))
    }
    /// Where the index keeps what meets the region; `None` where it cannot tell.
    pub fn ranges(&self, region: &crate::Region) -> Option<Vec<RangeInclusive<i64>>> {
        match (self, region) {
            (Layout::Plane(grid), crate::Region::Flat(flat)) => Some(grid.ranges(flat.bounds())),
            (Layout::Plane(_), _) | (Layout::Sphere(_), crate::Region::Flat(_)) => None,
            (Layout::Sphere(levels), region) => Some(levels.ranges(region)),
        }
    }
}
