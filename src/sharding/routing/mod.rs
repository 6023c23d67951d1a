//! What every node knows of placement.

pub mod cache;
pub mod registry;
pub mod table;

pub use cache::{CatalogCache, DatabaseEntry, Routing};
pub use registry::{Registry, Shard};
pub use table::RoutingTable;
