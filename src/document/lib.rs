//! BSON as bytes and as trees: views, builders, order, index-key encoding, paths, numbers, errors.
//!
//! Records travel through the system as *raw bytes*, validated once when they enter ([`validate`]), and are read
//! through [`Doc`], a borrowed view which decodes only what is asked for. [`Document`] and [`Value`] are the owned
//! tree, for commands, replies, metadata and expression results: never for records on a hot path.
//!
//! Invariant: this crate does no I/O and knows nothing of collections, servers or the network.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on the machine's clock")
)]

pub mod calendar;
pub mod collation;
pub mod compare;
pub mod decimal;
pub mod delta;
mod doubled;
pub mod encoding;
pub mod error;
pub mod extended_json;
pub mod fts;
pub mod hash;
pub mod key_string;
pub mod key_values;
mod macros;
pub mod meter;
pub mod multikey;
pub mod namespace;
pub mod number;
pub mod oid;
pub mod path;
pub mod raw;
pub mod shell;
pub mod token_key;
pub mod uuid;
pub mod validate;
pub mod value;
pub mod wildcard;
pub mod writer;

pub use collation::Collation;
pub use doubled::refuse_doubled;
pub use error::{Error, Result, codes, size_refused, wrong_type, wrong_types};
pub use namespace::is_internal_database;
pub use oid::ObjectId;
pub use raw::{Doc, DocBuf, Element, ValueRef};
pub use value::{Binary, CodeWithScope, DbPointer, Decimal128, Document, Regex, Timestamp, Value};
pub use writer::DocWriter;

#[cfg(test)]
mod tests;
