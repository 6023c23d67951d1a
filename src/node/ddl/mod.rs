//! The catalog: creating, dropping, renaming and changing collections and indexes; listing what is there.
//!
//! Every change takes the namespace's intent lock exclusively, then runs as one commit ([`lock`]), whose log entry is
//! what replay applies. What is refused is refused before anything changed.

pub mod capped;
pub mod clustered;
pub mod coll_mod;
pub mod collections;
pub mod commit_quorum;
mod encrypted_fields;
pub mod index_builds;
mod index_spec;
pub mod indexes;
pub mod list;
pub mod lock;
#[cfg(test)]
mod refusals;
pub mod rename;
pub mod shapes;
pub mod statistics;
mod storage_options;
#[cfg(test)]
mod tests;
pub mod validate;
