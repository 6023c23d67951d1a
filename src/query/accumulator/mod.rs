//! accumulator
