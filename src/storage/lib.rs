//! storage
pub mod tree;
pub mod files;
