//! Views: a name for a pipeline over another namespace.

use document::{Document, Value};

/// A view's definition, as `system.views` stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The collection or view it reads, in the same database, without the database name.
    pub on: String,
    pub pipeline: Vec<Value>,
    pub collation: Option<Document>,
}
