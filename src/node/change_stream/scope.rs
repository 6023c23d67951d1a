//! Which namespaces a stream watches.

use query::change_stream::Spec;
use query::pipeline::Namespace;

/// A collection, a database or the whole node (or cluster).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Collection(Namespace),
    Database(String),
    Cluster,
}

impl Scope {
    /// Of a stream opened on `ns`, whose collection is empty (or a `$cmd`) for a database.
    pub fn of(ns: &Namespace, spec: &Spec) -> Scope {
        match ns.collection.is_empty() || ns.collection.starts_with("$cmd") {
            true if spec.all_changes_for_cluster => Scope::Cluster,
            true => Scope::Database(ns.db.clone()),
            false => Scope::Collection(ns.clone()),
        }
    }
    /// Whether changes in the collection belong to the stream.
    pub fn sees(&self, db: &str, collection: &str, system_events: bool) -> bool {
        let usual = !collection.starts_with('$') && (system_events || !collection.starts_with("system."));
        match self {
            Scope::Collection(ns) => ns.db == db && ns.collection == collection,
            Scope::Database(watched) => watched == db && usual,
            Scope::Cluster => usual && !document::is_internal_database(db),
        }
    }
    /// Whether commands of the database may belong to the stream.
    pub fn sees_database(&self, db: &str) -> bool {
        match self {
            Scope::Collection(ns) => ns.db == db,
            Scope::Database(watched) => watched == db,
            Scope::Cluster => !document::is_internal_database(db),
        }
    }
    /// Whether an event of this type ends the stream.
    pub fn ends_with(&self, operation_type: &str) -> bool {
        match self {
            Scope::Collection(_) => matches!(operation_type, "drop" | "rename" | "dropDatabase"),
            Scope::Database(_) => operation_type == "dropDatabase",
            Scope::Cluster => false,
        }
    }
}
