//! The router against shards made of a few lists, which check versions and move chunks in the middle of batches.

mod fake;
mod reads;
mod scripts;
mod sub_pipelines;
mod targeting;
mod writes;
