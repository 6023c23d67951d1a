//! Words of texts: what a text index holds of a document, and what `$text` asks of it.
//!
//! ```text
//! "The Cafés are open"  ──tokens──>  The Cafés are open  ──stop words──>  Cafés open  ──fold, stem──>  cafe open
//! ```
//!
//! A document's score for a term is the sum over the indexed strings that hold it of
//!
//! ```text
//! weight * (1 + 1/2 + 1/4 + .. for each occurrence) * (0.5 + 0.5 * occurrences / tokens) * (1.1 if the string is the term)
//! ```
//! where stop words are no tokens; the score of a query is the sum over its terms.
//!
//! Stemmers are Snowball's; stop words are the lists of the crate `stop-words`, which differ in some words from the real
//! server's.

mod delimiters;
mod index;
mod language;
mod query;
#[cfg(test)]
mod tests;

pub use index::TextIndex;
pub use language::Language;
pub use query::TextQuery;
