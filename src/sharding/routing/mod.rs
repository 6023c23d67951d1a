//! What every node knows of placement.

pub mod table;

pub use table::RoutingTable;
