//! The argument of `$changeStream`.

use super::Token;
use crate::pipeline::Namespace;
use document::{Document, Error, Result, Timestamp, Value, bail, codes};

/// Where a stream begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Start {
    #[default]
    Now,
    /// Events of this time and later.
    At(Timestamp),
    /// Behind the event of this token; `start_after` also passes an invalidation.
    After { token: Token, start_after: bool },
}

/// Whether an image is asked for, and what its absence means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Images {
    #[default]
    Off,
    WhenAvailable,
    Required,
}

/// Which full document an update's event has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    #[default]
    None,
    /// The document as it is when the event is read.
    Current,
    /// The document as it was after the update.
    PostImage(Images),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    pub start: Start,
    pub full_document: Lookup,
    pub before_change: Images,
    pub all_changes_for_cluster: bool,
    pub show_expanded_events: bool,
    pub show_migration_events: bool,
    pub show_system_events: bool,
    pub show_raw_update_description: bool,
    pub allow_to_run_on_config_db: bool,
    pub allow_to_run_on_system_ns: bool,
}

impl Spec {
    /// # Errors
    /// IDLUnknownField (40415), TypeMismatch (14), BadValue (2) for an unknown mode, 50865 and 40674 for several starting
    /// points, those of [`Token::parse`], InvalidResumeToken (260) for `resumeAfter` an invalidation.
    pub fn parse(d: &Document) -> Result<Spec> {
        let mut spec = Spec::default();
        let (mut resume_after, mut start_after, mut at) = (None, None, None);
        for (name, v) in d.iter() {
            match (name, v) {
                (
                    "fullDocument"
                    | "fullDocumentBeforeChange"
                    | "resumeAfter"
                    | "startAfter"
                    | "startAtOperationTime",
                    Value::Null,
                ) => {}
                ("fullDocument", v) => spec.full_document = lookup(text(name, v)?)?,
                ("fullDocumentBeforeChange", v) => spec.before_change = images(text(name, v)?)?,
                ("resumeAfter", v) => resume_after = Some(token(name, v)?),
                ("startAfter", v) => start_after = Some(token(name, v)?),
                ("startAtOperationTime", Value::Timestamp(t)) => at = Some(*t),
                ("startAtOperationTime", v) => return Err(wrong_type(name, v, "timestamp")),
                (name, v) => match spec.flag(name) {
                    Some(flag) => {
                        *flag = v.as_bool().ok_or_else(|| wrong_type(name, v, "bool"))?;
                    }
                    None => {
                        bail!(IDL_UNKNOWN_FIELD, "BSON field '$changeStream.{name}' is an unknown field.")
                    }
                },
            }
        }
        spec.start = start(resume_after, start_after, at)?;
        Ok(spec)
    }

    fn flag(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "allChangesForCluster" => &mut self.all_changes_for_cluster,
            "showExpandedEvents" => &mut self.show_expanded_events,
            "showMigrationEvents" => &mut self.show_migration_events,
            "showSystemEvents" => &mut self.show_system_events,
            "showRawUpdateDescription" => &mut self.show_raw_update_description,
            "allowToRunOnConfigDB" => &mut self.allow_to_run_on_config_db,
            "allowToRunOnSystemNS" => &mut self.allow_to_run_on_system_ns,
            _ => return None,
        })
    }

    /// Whether a stream may be opened on the namespace (the collection is empty for a database).
    ///
    /// # Errors
    /// InvalidOptions (72) for a cluster's changes elsewhere than on `admin`, InvalidNamespace (73) for internal databases
    /// and collections, InvalidResumeToken (260) for a token that cannot be of this collection.
    pub fn check_namespace(&self, ns: &Namespace) -> Result<()> {
        let whole = ns.collection.is_empty();
        if self.all_changes_for_cluster {
            if ns.db != "admin" || !whole {
                let shown = if whole { format!("{}.$cmd.aggregate", ns.db) } else { ns.to_string() };
                bail!(
                    INVALID_OPTIONS,
                    "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with \
                     no collection name; found {shown}"
                );
            }
            return Ok(());
        }
        if matches!(ns.db.as_str(), "admin" | "local")
            || (ns.db == "config" && !self.allow_to_run_on_config_db)
        {
            bail!(INVALID_NAMESPACE, "$changeStream may not be opened on the internal {} database", ns.db);
        }
        if ns.collection.starts_with("system.") && !self.allow_to_run_on_system_ns {
            bail!(INVALID_NAMESPACE, "$changeStream may not be opened on the internal {ns} collection");
        }
        if let Start::After { token, .. } = &self.start
            && !whole
            && token.is_event
            && token.uuid.is_none()
        {
            bail!(
                INVALID_RESUME_TOKEN,
                "Attempted to resume a single-collection stream, but the resume token does not include a UUID."
            );
        }
        Ok(())
    }

    /// Whether updates wait for a document of another time or place than the log's.
    pub fn looks_up(&self) -> bool {
        self.full_document == Lookup::Current
    }
}

fn start(resume_after: Option<Token>, start_after: Option<Token>, at: Option<Timestamp>) -> Result<Start> {
    match (resume_after, start_after, at) {
        (Some(_), Some(_), _) => {
            bail!(50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage.")
        }
        (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
            bail!(40674, "Only one type of resume option is allowed, but multiple were found.")
        }
        (Some(token), None, None) if token.from_invalidate => bail!(
            INVALID_RESUME_TOKEN,
            "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification."
        ),
        (Some(token), None, None) => Ok(Start::After { token, start_after: false }),
        (None, Some(token), None) => Ok(Start::After { token, start_after: true }),
        (None, None, Some(at)) => Ok(Start::At(at)),
        (None, None, None) => Ok(Start::Now),
    }
}

fn wrong_type(name: &str, v: &Value, expected: &str) -> Error {
    document::wrong_type(&format!("$changeStream.{name}"), v.type_name(), expected)
}

fn text<'a>(name: &str, v: &'a Value) -> Result<&'a str> {
    v.as_str().ok_or_else(|| wrong_type(name, v, "string"))
}

fn token(name: &str, v: &Value) -> Result<Token> {
    match v {
        Value::Document(d) => Token::parse(d),
        v => Err(wrong_type(name, v, "object")),
    }
}

fn lookup(mode: &str) -> Result<Lookup> {
    Ok(match mode {
        "default" => Lookup::None,
        "updateLookup" => Lookup::Current,
        "whenAvailable" => Lookup::PostImage(Images::WhenAvailable),
        "required" => Lookup::PostImage(Images::Required),
        mode => return Err(unknown_mode("fullDocument", mode)),
    })
}

fn images(mode: &str) -> Result<Images> {
    Ok(match mode {
        "off" => Images::Off,
        "whenAvailable" => Images::WhenAvailable,
        "required" => Images::Required,
        mode => return Err(unknown_mode("fullDocumentBeforeChange", mode)),
    })
}

fn unknown_mode(field: &str, mode: &str) -> Error {
    let text = format!("Enumeration value '{mode}' for field '$changeStream.{field}' is not a valid value.");
    Error::new(codes::BAD_VALUE, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn options_are_read_and_bad_ones_have_their_codes() {
        let code = |d: Document| Spec::parse(&d).unwrap_err().code;
        assert_eq!(code(doc! { "bogus": 1 }), codes::IDL_UNKNOWN_FIELD);
        assert_eq!(code(doc! { "showExpandedEvents": (Value::Null) }), codes::TYPE_MISMATCH);
        assert_eq!(code(doc! { "fullDocument": 1 }), codes::TYPE_MISMATCH);
        assert_eq!(code(doc! { "fullDocument": "off" }), codes::BAD_VALUE);
        assert_eq!(code(doc! { "resumeAfter": "x" }), codes::TYPE_MISMATCH);
        let token = Token::high_water_mark(Timestamp::new(5, 1));
        let shown = token.to_document();
        assert_eq!(code(doc! { "resumeAfter": (shown.clone()), "startAfter": (shown.clone()) }), 50865);
        let two = doc! { "startAfter": (shown.clone()), "startAtOperationTime": (Timestamp::new(1, 1)) };
        assert_eq!(code(two), 40674);
        let spec = Spec::parse(&doc! { "resumeAfter": shown, "startAfter": (Value::Null) }).unwrap();
        assert_eq!(spec.start, Start::After { token, start_after: false });
    }

    #[test]
    fn internal_namespaces_are_refused() {
        let check = |d: Document, ns: &str| {
            let ns = match ns.split_once('.') {
                Some((db, coll)) => Namespace::new(db, coll),
                None => Namespace::new(ns, ""),
            };
            Spec::parse(&d).unwrap().check_namespace(&ns).map_err(|e| e.code)
        };
        assert_eq!(check(doc! {}, "admin.c"), Err(codes::INVALID_NAMESPACE));
        assert_eq!(check(doc! {}, "config"), Err(codes::INVALID_NAMESPACE));
        assert_eq!(check(doc! {}, "db.system.views"), Err(codes::INVALID_NAMESPACE));
        assert_eq!(check(doc! { "allChangesForCluster": true }, "db"), Err(codes::INVALID_OPTIONS));
        assert_eq!(check(doc! { "allChangesForCluster": true }, "admin"), Ok(()));
        assert_eq!(check(doc! {}, "db.c"), Ok(()));
    }
}
