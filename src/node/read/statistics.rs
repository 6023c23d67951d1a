//! Sizes of a collection, as collStats and `$collStats` show them.

pub use crate::ddl::statistics::{collection_statistics as collection_stats, no_statistics};
