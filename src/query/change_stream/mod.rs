//! Change streams, as far as they need no log: options, resume tokens, and what an update's difference says.

pub mod description;
pub mod spec;
pub mod split;
pub mod token;

pub use spec::{Images, Lookup, Spec, Start};
pub use token::Token;
