//! One file a stage (or a family).

pub mod bucket;
pub mod bucket_auto;
pub mod change_stream;
pub mod count;
pub mod densify;
pub mod facet;
pub mod geo_near;
pub mod host_stages;
pub mod inhibit;
pub mod matching;
pub mod project;
pub mod rank_fusion;
pub mod redact;
pub mod replace_root;
pub mod sample;
pub mod unpack_bucket;
pub mod unwind;
pub mod window;
