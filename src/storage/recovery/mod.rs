//! Opening.
