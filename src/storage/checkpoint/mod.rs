//! Checkpoints: all collections, and what other layers give as named blobs, at one position of the log.
mod image;
mod manifest;
