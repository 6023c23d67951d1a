//! What a privilege is about, and which of its forms cover what a command touches.
//!
//! ```text
//! {db: "d", collection: "c"}   exactly d.c, system collections and those of local and config included
//! {db: "d", collection: ""}    d itself and its normal collections
//! {db: "", collection: "c"}    c in every database
//! {db: "", collection: ""}     every database but local and config, and their normal collections
//! {cluster: true}              the cluster
//! {anyResource: true}          everything
//! {db: .., system_buckets: ..} the buckets of time-series collections, with the same wild cards
//! ```
//! A normal collection is one whose name does not begin with `system.`, nor, in `local`, with `replset.`.

use document::{Document, Result, Value, bail, doc};
use query::timeseries::BUCKETS_PREFIX;

/// The resource of a privilege.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    Any,
    Cluster,
    /// Every normal collection of every database but `local` and `config`.
    AnyNormal,
    Database(String),
    /// A collection of this name in every database.
    Collection(String),
    Exact(String, String),
    /// `system.buckets.*`; an empty name stands for all.
    Buckets(String, String),
}

/// What a command touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Cluster,
    Database(String),
    Namespace(String, String),
    /// Every normal collection of every database, as `usersInfo` for all or a change stream of the cluster.
    AnyNormal,
    Resource(Resource),
}

/// Whether a collection is one of the database's own.
pub fn is_normal(db: &str, collection: &str) -> bool {
    let of_set = db == "local" && collection.starts_with("replset.");
    !of_set && !collection.starts_with("system.")
}

fn is_special(db: &str) -> bool {
    matches!(db, "local" | "config")
}

impl Resource {
    pub fn covers(&self, target: &Target) -> bool {
        match target {
            Target::Cluster => matches!(self, Resource::Any | Resource::Cluster),
            Target::Database(db) => match self {
                Resource::Any => true,
                Resource::AnyNormal => !is_special(db),
                Resource::Database(own) => own == db,
                _ => false,
            },
            Target::AnyNormal => matches!(self, Resource::Any | Resource::AnyNormal),
            Target::Resource(wanted) => matches!(self, Resource::Any) || self == wanted,
            Target::Namespace(db, collection) => self.covers_collection(db, collection),
        }
    }

    fn covers_collection(&self, db: &str, collection: &str) -> bool {
        match self {
            Resource::Any => true,
            Resource::Cluster => false,
            Resource::Exact(d, c) => d == db && c == collection,
            Resource::Collection(c) => c == collection,
            Resource::AnyNormal => is_normal(db, collection) && !is_special(db),
            Resource::Database(d) => d == db && is_normal(db, collection),
            Resource::Buckets(d, c) => {
                let fits = |own: &str, name: &str| own.is_empty() || own == name;
                collection.strip_prefix(BUCKETS_PREFIX).is_some_and(|name| fits(d, db) && fits(c, name))
            }
        }
    }

    /// Whether it gives some right in a database: what its name may be listed for.
    pub fn is_in(&self, db: &str) -> bool {
        match self {
            Resource::Any | Resource::Collection(_) => true,
            Resource::Cluster => false,
            Resource::AnyNormal => !is_special(db),
            Resource::Database(d) | Resource::Exact(d, _) => d == db,
            Resource::Buckets(d, _) => d.is_empty() || d == db,
        }
    }

    /// The database whose administrators may grant it; `admin` for what concerns several.
    pub fn database(&self) -> &str {
        match self {
            Resource::Database(db) | Resource::Exact(db, _) => db,
            Resource::Buckets(db, _) if !db.is_empty() => db,
            _ => "admin",
        }
    }

    /// # Errors
    /// FailedToParse (9) for a document of another form.
    pub fn parse(document: &Document) -> Result<Resource> {
        let flag = |name: &str| document.get(name).map(Value::truthy);
        let text = |name: &str| -> Result<Option<String>> {
            match document.get(name) {
                None => Ok(None),
                Some(Value::String(s)) => Ok(Some(s.clone())),
                Some(v) => bail!(TYPE_MISMATCH, "resource.{name} must be a string, found {}", v.type_name()),
            }
        };
        const KNOWN: &[&str] = &["anyResource", "cluster", "db", "collection", "system_buckets"];
        if let Some(name) = document.keys().find(|name| !KNOWN.contains(name)) {
            bail!(FAILED_TO_PARSE, "Unrecognized resource field: {name}");
        }
        let (db, collection, buckets) = (text("db")?, text("collection")?, text("system_buckets")?);
        match (flag("anyResource"), flag("cluster"), db, collection, buckets) {
            (Some(true), None, None, None, None) => Ok(Resource::Any),
            (None, Some(true), None, None, None) => Ok(Resource::Cluster),
            (None, None, Some(db), Some(collection), None) => Resource::of_names(db, collection),
            (None, None, Some(db), None, Some(name)) => Ok(Resource::Buckets(db, name)),
            (Some(false), ..) => bail!(FAILED_TO_PARSE, "anyResource must be true when specified"),
            (_, Some(false), ..) => bail!(FAILED_TO_PARSE, "cluster must be true when specified"),
            (None, None, Some(_), None, None) => {
                bail!(FAILED_TO_PARSE, "resource must set both 'db' and 'collection' if it sets either")
            }
            (None, None, None, Some(_), _) => {
                bail!(FAILED_TO_PARSE, "resource must set both 'db' and 'collection' if it sets either")
            }
            _ => bail!(
                FAILED_TO_PARSE,
                "resource must be one of: {{anyResource: true}}, {{cluster: true}}, {{db: .., collection: ..}}"
            ),
        }
    }

    fn of_names(db: String, collection: String) -> Result<Resource> {
        if !db.is_empty() && crate::request::check_database_name(&db).is_err() {
            bail!(FAILED_TO_PARSE, "resource database name is not valid: {db}");
        }
        if collection.contains('\0') || (collection.starts_with('.') || collection.contains('$')) {
            let oplog = db == "local" && collection == "oplog.$main";
            if !oplog {
                bail!(FAILED_TO_PARSE, "resource collection name is not valid: {collection}");
            }
        }
        Ok(match (db.is_empty(), collection.is_empty()) {
            (true, true) => Resource::AnyNormal,
            (false, true) => Resource::Database(db),
            (true, false) => Resource::Collection(collection),
            (false, false) => Resource::Exact(db, collection),
        })
    }

    pub fn to_document(&self) -> Document {
        let names = |db: &str, collection: &str| doc! { "db": db, "collection": collection };
        match self {
            Resource::Any => doc! { "anyResource": true },
            Resource::Cluster => doc! { "cluster": true },
            Resource::AnyNormal => names("", ""),
            Resource::Database(db) => names(db, ""),
            Resource::Collection(collection) => names("", collection),
            Resource::Exact(db, collection) => names(db, collection),
            Resource::Buckets(db, name) => doc! { "db": db.as_str(), "system_buckets": name.as_str() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(db: &str, collection: &str) -> Target {
        Target::Namespace(db.to_string(), collection.to_string())
    }

    /// Which of `d.c`, `d.system.js`, `local.c`, `local.replset.x`, `d.system.buckets.c`, `d`, the cluster it covers.
    fn covered(resource: Resource) -> String {
        let targets = [
            ns("d", "c"),
            ns("d", "system.js"),
            ns("local", "c"),
            ns("local", "replset.x"),
            ns("d", "system.buckets.c"),
            Target::Database("d".to_string()),
            Target::Cluster,
        ];
        targets.iter().map(|t| if resource.covers(t) { 'x' } else { '.' }).collect()
    }

    #[test]
    fn each_form_covers_what_is_written_of_it() {
        let s = str::to_string;
        assert_eq!(covered(Resource::Any), "xxxxxxx");
        assert_eq!(covered(Resource::Cluster), "......x");
        assert_eq!(covered(Resource::AnyNormal), "x....x.");
        assert_eq!(covered(Resource::Database(s("d"))), "x....x.");
        assert_eq!(covered(Resource::Database(s("local"))), "..x....");
        assert_eq!(covered(Resource::Collection(s("c"))), "x.x....");
        assert_eq!(covered(Resource::Collection(s("system.js"))), ".x.....");
        assert_eq!(covered(Resource::Exact(s("local"), s("replset.x"))), "...x...");
        assert_eq!(covered(Resource::Buckets(s(""), s("c"))), "....x..");
    }

    #[test]
    fn documents_are_read_back_and_others_refused() {
        for d in [
            doc! {"anyResource": true},
            doc! {"cluster": true},
            doc! {"db": "", "collection": ""},
            doc! {"db": "d", "collection": ""},
            doc! {"db": "", "collection": "c"},
            doc! {"db": "d", "collection": "c"},
            doc! {"db": "", "system_buckets": ""},
        ] {
            assert_eq!(Resource::parse(&d).unwrap().to_document(), d);
        }
        for d in [
            doc! {},
            doc! {"db": "d"},
            doc! {"collection": "c"},
            doc! {"cluster": false},
            doc! {"cluster": true, "db": "d", "collection": "c"},
            doc! {"x": 1},
            doc! {"db": "a.b", "collection": ""},
        ] {
            assert_eq!(Resource::parse(&d).unwrap_err().code, 9, "{d:?}");
        }
    }
}
