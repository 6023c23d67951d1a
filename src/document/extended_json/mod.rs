//! MongoDB Extended JSON v2: values as text, for logs, tools and tests.
//!
//! Canonical keeps every type (`{"$numberInt":"1"}`); relaxed writes plain numbers and ISO dates of the years 1970 to
//! 9999. The reader takes both, and the older `{"$date": "..."}`, `{"$binary": "...", "$type": "00"}`, `{"$uuid": ..}`.

mod date;
mod parse;
mod write;

pub use date::{format_date, iso_date, parse_date};
pub use parse::from_str;
pub use write::{to_canonical, to_logged, to_relaxed, write_logged, write_text};
