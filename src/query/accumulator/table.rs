//! Every accumulator the server knows, one row each. A name without a row is unknown to the server too (15952).

use super::*;

/// Parses the accumulator's argument: (its name, the argument, the scope).
pub type Parse = fn(&'static str, &Value, &Variables) -> Result<Parsed>;

pub struct Row {
    pub name: &'static str,
    /// `None`: the server has it, we do not.
    pub parse: Option<Parse>,
}

/// The row of an accumulator.
pub fn find(name: &str) -> Option<&'static Row> {
    ACCUMULATORS.iter().find(|r| r.name == name)
}

const fn row(name: &'static str, parse: Parse) -> Row {
    Row { name, parse: Some(parse) }
}

/// The table.
pub const ACCUMULATORS: &[Row] = &[
    row("$sum", statistics::sum),
    row("$avg", statistics::avg),
    row("$count", statistics::count),
    row("$min", extreme::parse),
    row("$max", extreme::parse),
    row("$first", extreme::parse),
    row("$last", extreme::parse),
    row("$push", collect::parse),
    row("$addToSet", collect::parse),
    row("$setUnion", collect::parse),
    row("$concatArrays", collect::parse),
    row("$mergeObjects", collect::parse),
    row("$stdDevPop", statistics::deviation),
    row("$stdDevSamp", statistics::deviation),
    row("$firstN", top::parse_n),
    row("$lastN", top::parse_n),
    row("$minN", top::parse_n),
    row("$maxN", top::parse_n),
    row("$top", top::parse_top),
    row("$bottom", top::parse_top),
    row("$topN", top::parse_top),
    row("$bottomN", top::parse_top),
    row("$median", percentile::accumulator),
    row("$percentile", percentile::accumulator),
    row("$accumulator", custom::accumulator),
    row("$_internalJsReduce", custom::reduce),
];
