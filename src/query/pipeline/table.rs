//! Every stage the server knows, one row each: implemented here, supplied by the host, or known and not implemented. A
//! name without a row is unknown to the server too (40324).

use super::host::Role;
use super::*;
use stages::*;

/// Parses a stage's argument; sugar gives several stages.
pub type Parse = fn(&'static str, &Value, &Context) -> Result<Vec<Parsed>>;

pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    /// May stand in a `$facet`.
    pub in_facet: bool,
    /// May be the first stage of `aggregate: 1`.
    pub without_collection: bool,
}

#[derive(Clone, Copy)]
pub enum Kind {
    Local(Parse),
    Host(Role, fn(&'static str, &Value, &Context) -> Result<HostStage>),
    /// Written as other stages before the table is asked ([`super::fusion::expand`]).
    Expanded,
}

/// The row of a stage.
pub fn find(name: &str) -> Option<&'static Row> {
    STAGES.iter().find(|r| r.name == name)
}

const fn local(name: &'static str, parse: Parse) -> Row {
    Row { name, kind: Kind::Local(parse), in_facet: true, without_collection: false }
}
const fn source(name: &'static str, without_collection: bool) -> Row {
    let kind = Kind::Host(Role::Source, host_stages::source);
    Row { name, kind, in_facet: false, without_collection }
}
const fn join(name: &'static str, parse: fn(&'static str, &Value, &Context) -> Result<HostStage>) -> Row {
    Row { name, kind: Kind::Host(Role::Join, parse), in_facet: true, without_collection: false }
}
const fn write(name: &'static str, parse: fn(&'static str, &Value, &Context) -> Result<HostStage>) -> Row {
    Row { name, kind: Kind::Host(Role::Write, parse), in_facet: false, without_collection: false }
}
const fn expanded(name: &'static str) -> Row {
    Row { name, kind: Kind::Expanded, in_facet: false, without_collection: false }
}

/// The table.
pub const STAGES: &[Row] = &[
    local("$match", matching::parse),
    local("$project", project::project),
    local("$addFields", project::add_fields),
    local("$set", project::add_fields),
    local("$unset", project::unset),
    local("$group", group::parse),
    local("$sort", sort::parse),
    local("$limit", count::limit),
    local("$skip", count::skip),
    local("$count", count::count),
    local("$unwind", unwind::parse),
    local("$replaceRoot", replace_root::parse),
    local("$replaceWith", replace_root::parse),
    local("$sortByCount", bucket::sort_by_count),
    local("$bucket", bucket::bucket),
    local("$bucketAuto", bucket_auto::parse),
    local("$sample", sample::parse),
    local("$redact", redact::parse),
    local("$setWindowFields", window::parse),
    local("$_internalSetWindowFields", window::parse_shard),
    local("$fill", window::fill::parse),
    local("$densify", densify::parse),
    local("$_internalDensify", densify::parse_shard),
    Row { name: "$facet", kind: Kind::Local(facet::parse), in_facet: false, without_collection: false },
    Row {
        name: sort::ADD_SORT_KEY,
        kind: Kind::Local(sort::add_sort_key_stage),
        in_facet: false,
        without_collection: false,
    },
    local("$_internalInhibitOptimization", inhibit::parse),
    Row { in_facet: false, ..local("$geoNear", geo_near::parse) },
    Row { in_facet: false, ..local(geo_near::MEASURE, geo_near::measure) },
    Row { in_facet: false, ..local("$_internalUnpackBucket", unpack_bucket::parse) },
    join("$lookup", lookup::parse_lookup),
    join("$graphLookup", graph::parse),
    join("$unionWith", lookup::parse_union),
    write("$out", host_stages::out),
    write("$merge", host_stages::merge),
    Row {
        name: "$documents",
        kind: Kind::Host(Role::Source, host_stages::documents),
        in_facet: false,
        without_collection: true,
    },
    source("$collStats", false),
    source("$indexStats", false),
    source("$planCacheStats", false),
    Row {
        name: "$changeStream",
        kind: Kind::Host(Role::Source, change_stream::source),
        in_facet: false,
        without_collection: true,
    },
    source("$currentOp", true),
    source("$listLocalSessions", true),
    source("$listSessions", false),
    source("$listSampledQueries", true),
    source("$listCatalog", true),
    source("$listClusterCatalog", true),
    source("$shardedDataDistribution", true),
    source("$queryStats", true),
    source("$querySettings", true),
    source("$listMqlEntities", true),
    source("$_internalAllCollectionStats", true),
    Row {
        name: "$changeStreamSplitLargeEvent",
        kind: Kind::Local(change_stream::split_large_event),
        in_facet: false,
        without_collection: false,
    },
    Row { in_facet: true, ..expanded("$rankFusion") },
    local("$_internalRank", rank_fusion::rank),
    local("$_internalFuse", rank_fusion::fuse),
    expanded("$scoreFusion"),
    Row { in_facet: true, ..expanded("$score") },
    source("$search", false),
    source("$searchMeta", false),
    source("$vectorSearch", false),
    source("$listSearchIndexes", false),
];
