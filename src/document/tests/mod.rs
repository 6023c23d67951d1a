//! Properties that hold between the modules of this crate.

mod decimals;
mod extended_json;
mod generate;
mod index_keys;
mod keys;
mod paths;
mod validation;
