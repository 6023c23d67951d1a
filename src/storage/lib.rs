//! storage
pub mod files;
pub mod log;
pub mod tree;
