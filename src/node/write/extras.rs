//! What a collection's options ask of a write: validators, capped sizes; and indexes made inside a commit.

use super::unit::{Origin, WriteUnit, existing_in};
use crate::open::partial_predicate;
use document::error::INTERRUPTION;
use document::{Collation, Doc, Document, Error, Result, Value, ValueRef, bail, doc, err, meter};
use query::QueryContext;
use query::matcher::Matcher;
use std::sync::Arc;
use storage::index::SpecConflict;
use storage::{CollectionView, IndexSpec, RecordId};

/// A collection's `validator`, parsed once.
#[derive(Debug)]
pub struct Validator {
    pub matcher: Matcher,
    /// How it was parsed.
    context: QueryContext,
    /// Whether documents are refused: not with `validationLevel: "off"` or `validationAction: "warn"`.
    pub refuses: bool,
    /// Whether the log tells of them: with `validationAction: "warn"` or `"errorAndLog"`.
    pub logs: bool,
    /// It asks for the time: that of the commit in which it is asked ([`WriteUnit::is_valid`]).
    timed: bool,
    /// `validationLevel: "moderate"`: a document that was not valid before may stay so.
    pub moderate: bool,
}

impl Validator {
    /// Refuses options whose validator a collection of this name may not get. Collections that have one keep it.
    ///
    /// # Errors
    /// InvalidOptions (72), 5626500 for `$near`, those of the validator's expressions.
    pub fn check_new(ns: &str, options: &Document) -> Result<()> {
        let Some(filter) = options.get_document("validator").filter(|f| !f.is_empty()) else { return Ok(()) };
        Matcher::parse_plain(filter.to_doc_buf().doc(), &QueryContext::collated(&Collation::SIMPLE))?;
        Validator::of(options)?;
        let (db, name) = storage::split_namespace(ns);
        if document::is_internal_database(db) {
            bail!(
                INVALID_OPTIONS,
                "Document validators are not allowed on collection {ns} in the {db} database"
            );
        }
        if name.starts_with("system.") {
            bail!(INVALID_OPTIONS, "Document validators not allowed on system collection {ns}");
        }
        Ok(())
    }
    /// Refuses options, given to a collection that has others, by which values stay plain, and are logged, that are to be encrypted.
    ///
    /// # Errors
    /// QueryFeatureNotAllowed (224).
    pub fn check_encryption(given: &Document, others: &Document) -> Result<()> {
        let of = |name: &str| given.get(name).or_else(|| others.get(name));
        let text = |name: &str| of(name).and_then(Value::as_str);
        let lenient = text("validationAction").is_some_and(|action| action != "error")
            || text("validationLevel") == Some("moderate");
        let filter = of("validator").and_then(Value::as_document).filter(|_| lenient);
        if filter.is_some_and(|filter| names_encryption(filter.to_doc_buf().doc())) {
            bail!(
                QUERY_FEATURE_NOT_ALLOWED,
                "Encryption-related validator keywords are not allowed in this context"
            );
        }
        Ok(())
    }
    /// Reads the collection's options; `None` without a validator.
    pub fn of(options: &Document) -> Result<Option<Arc<Validator>>> {
        let Some(filter) = options.get_document("validator").filter(|f| !f.is_empty()) else {
            return Ok(None);
        };
        let off = options.get_str("validationLevel") == Some("off");
        let action = options.get_str("validationAction").unwrap_or("error");
        let refuses = !off && action != "warn";
        let logs = !off && action != "error";
        let collation = match options.get_document("collation") {
            Some(spec) => Collation::of_document(spec)?,
            None => Collation::SIMPLE,
        };
        let context = QueryContext::collated(&collation);
        let matcher = Matcher::parse(filter.to_doc_buf().doc(), &context)?;
        let moderate = options.get_str("validationLevel") == Some("moderate");
        let timed = names_time(filter);
        Ok(Some(Arc::new(Validator { matcher, context, refuses, logs, timed, moderate })))
    }
}

impl Validator {
    fn at_time_of(&self, node: &crate::Node) -> Matcher {
        self.matcher.at_time_of(&node.parse_context(Document::new()))
    }
    /// What refuses nothing does not accept a document for which it fails. `matcher` is its own, as of some time.
    fn accepts_by(&self, matcher: &Matcher, doc: Doc<'_>) -> Result<bool> {
        let goes_on = |e: &Error| !self.refuses && !e.is(INTERRUPTION) && e.code != meter::OVERRUN;
        match matcher.matches(doc) {
            Err(e) if goes_on(&e) => Ok(false),
            accepted => accepted,
        }
    }
    /// Whether it accepts the document at this time.
    ///
    /// # Errors
    /// Those of its expressions where it refuses, and interrupts.
    pub(super) fn accepts_now(&self, node: &crate::Node, doc: Doc<'_>) -> Result<bool> {
        match self.timed {
            true => self.accepts_by(&self.at_time_of(node), doc),
            false => self.accepts_by(&self.matcher, doc),
        }
    }
    /// `errInfo` of a document that it does not accept.
    pub(super) fn description(&self, doc: Doc<'_>) -> Document {
        super::refusal::info(self.matcher.filter(), doc, &self.context)
    }
}

/// Whether a filter has a schema that says that something is encrypted.
fn names_encryption(filter: Doc<'_>) -> bool {
    filter.iter().any(|e| match (e.name(), e.value()) {
        ("$jsonSchema", ValueRef::Document(schema)) => query::matcher::ops::schema::names_encryption(schema),
        ("$and" | "$or" | "$nor", ValueRef::Array(list)) => {
            list.iter().any(|e| e.value().as_document().is_some_and(names_encryption))
        }
        _ => false,
    })
}

/// Whether a filter names a variable that stands for the time, or may.
fn names_time(filter: &Document) -> bool {
    fn named(v: &Value) -> bool {
        match v {
            Value::String(s) => s.starts_with("$$NOW") || s.starts_with("$$CLUSTER_TIME"),
            Value::Document(d) => names_time(d),
            Value::Array(items) => items.iter().any(named),
            _ => false,
        }
    }
    filter.iter().any(|(_, v)| named(v))
}

/// Limits of a capped collection.
#[derive(Clone, Copy, Debug)]
pub struct Capped {
    pub bytes_max: u64,
    pub documents_max: Option<u64>,
}

impl Capped {
    pub fn of(options: &Document) -> Option<Capped> {
        if !options.get("capped").is_some_and(Value::truthy) {
            return None;
        }
        let bytes_max =
            options.get("size").and_then(document::number::to_i64_saturating).unwrap_or(4096).max(256);
        let documents_max =
            options.get("max").and_then(document::number::to_i64_saturating).filter(|n| *n > 0);
        Some(Capped { bytes_max: bytes_max as u64, documents_max: documents_max.map(|n| n as u64) })
    }
}

/// Names of databases may not differ by case alone.
///
/// # Errors
/// DatabaseDifferCase (13297).
pub fn check_case(node: &crate::Node, db: &str) -> Result<()> {
    match node.namespaces.differing_in_case(db) {
        Some(other) => bail!(
            DATABASE_DIFFER_CASE,
            "db already exists with different case already have: [{other}] trying to create [{db}]"
        ),
        None => Ok(()),
    }
}

/// Bytes of a document, and as many of what is said of it, that a line of the log shows.
const LOGGED_BYTES_MAX: usize = 4096;

/// What a line of the log shows of a document: of a long one `{$truncated: text}`.
fn shown(d: Doc<'_>) -> Document {
    query::text::truncated(d, LOGGED_BYTES_MAX).unwrap_or_else(|| d.to_document())
}

impl crate::Node {
    /// Has logged what the operation has noted of documents that validators do not accept. The caller holds no latch.
    pub(super) fn log_validation_failures(&self, op: &crate::Operation) {
        let failures = op.take_validation_failures();
        if failures.is_empty() {
            return;
        }
        let Some(hooks) = self.hooks.read().clone() else { return };
        failures.into_iter().for_each(|failure| hooks.validation_failed(op.client.connection_id, failure));
    }
}

impl WriteUnit<'_> {
    /// Refuses a document that the validator does not accept, or notes it for the log, or both.
    ///
    /// # Errors
    /// DocumentValidationFailure (121), those of the validator's expressions where it refuses, and interrupts.
    pub fn check_validator(&self, doc: Doc<'_>) -> Result<()> {
        let Some(v) = self.state.validator.as_ref().filter(|v| v.refuses || v.logs) else { return Ok(()) };
        if self.is_accepted(v, doc)? {
            return Ok(());
        }
        let info = match self.repeats {
            true => self.op.ahead.description(v, doc)?,
            false => v.description(doc),
        };
        if v.logs {
            self.op.note_validation_failure(doc! {
                "namespace": self.slot.ns.as_str(), "document": shown(doc),
                "errInfo": shown(info.to_doc_buf().doc()),
            });
        }
        match v.refuses {
            true => Err(err!(DOCUMENT_VALIDATION_FAILURE, "Document failed validation")
                .with_info(doc! { "errInfo": info })),
            false => Ok(()),
        }
    }

    fn is_accepted(&self, validator: &Arc<Validator>, doc: Doc<'_>) -> Result<bool> {
        let now = || validator.at_time_of(self.node);
        let matcher =
            || if validator.timed { self.timed_validator.get_or_init(now) } else { &validator.matcher };
        let accepts = || validator.accepts_by(matcher(), doc);
        if self.repeats { self.op.ahead.verdict(validator, doc, accepts) } else { accepts() }
    }

    /// As [`WriteUnit::check_validator`], for what an update made of `old`.
    pub fn check_validator_of_update(&self, old: Doc<'_>, new: Doc<'_>) -> Result<()> {
        match &self.state.validator {
            Some(v) if v.moderate && !self.is_accepted(v, old)? => Ok(()),
            _ => self.check_validator(new),
        }
    }

    /// Refuses an update that makes a document of a capped collection larger than allowed; sizes may change since 5.0.
    pub fn check_capped_growth(&self, _old: Doc<'_>, new: Doc<'_>) -> Result<()> {
        match self.state.capped {
            Some(c) if new.bytes().len() as u64 > c.bytes_max => {
                bail!(
                    CANNOT_GROW_DOCUMENT_IN_CAPPED_NAMESPACE,
                    "Cannot change the size of a document in a capped collection"
                )
            }
            _ => Ok(()),
        }
    }

    /// Removes the oldest documents of a capped collection that has outgrown its limits. Each removal is logged.
    pub fn trim_capped(&mut self) -> Result<()> {
        let Some(capped) = self.state.capped else { return Ok(()) };
        loop {
            let Some(c) = self.collection() else { return Ok(()) };
            let too_many = capped.documents_max.is_some_and(|max| c.len() as u64 > max);
            if c.len() <= 1 || (!too_many && c.data_bytes() <= capped.bytes_max) {
                return Ok(());
            }
            let oldest: Option<RecordId> = c.records().first().map(|(record, _)| record);
            match oldest {
                Some(record) => self.delete_as_well(record, Origin::default())?,
                None => return Ok(()),
            };
        }
    }

    /// Adds the index of this specification over what is there, and logs it. False when it exists.
    pub fn create_index_from(&mut self, spec: Document) -> Result<bool> {
        let spec = IndexSpec::parse(&spec, &partial_predicate)?;
        let mut o = doc! { "createIndexes": storage::split_namespace(&self.slot.ns).1 };
        for (name, value) in spec.document().iter() {
            o.push(name, value.clone());
        }
        let (ns, older, keys) = (&self.slot.ns, self.is_older_than_transaction(), self.node.offered_keys());
        let in_transaction = self.is_in_transaction();
        let c = existing_in(self.slot, self.state)?;
        let uuid = c.uuid();
        // It is in use by others, or holds what an index would have to be built over.
        let what = if older { "existing" } else { "non-empty" };
        let stands_against = older || (in_transaction && !c.is_empty());
        if stands_against && c.check_index(&spec)? != SpecConflict::Identical {
            bail!(
                OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "Cannot create new indexes on {what} collection {ns} in a multi-document transaction."
            );
        }
        if !c.add_index(spec, keys)? {
            return Ok(false);
        }
        self.command(Some(uuid), o, None, false);
        Ok(true)
    }
}
