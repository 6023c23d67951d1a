//! storage
pub mod tree;
