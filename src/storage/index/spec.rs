//! The definition of an index: parsing, validity of the key pattern, names, and conflicts between two definitions.
//!
//! The wording of errors is the real server's, because drivers' and tools' tests match on it.

use std::fmt;

use document::{Collation, Doc, Document, Result, Value, bail};

use geo::cells::{Grid, Layout, Levels};

use super::wildcard::{self, WildcardIndex};
use super::{Predicate, text};
use document::fts::TextIndex;
use std::sync::Arc;

/// Makes the predicate of a `partialFilterExpression` in the index's collation; given by a layer that knows the query
/// language.
pub type PredicateFactory<'f> = dyn Fn(&Document, &Collation) -> Result<Predicate> + Send + Sync + 'f;

/// The factory of a caller without partial indexes: refuses.
pub fn no_partial_indexes(_filter: &Document, _: &Collation) -> Result<Predicate> {
    bail!(CANNOT_CREATE_INDEX, "partial indexes are not available here")
}

/// How one field of a key pattern orders its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number above zero.
    Ascending,
    /// A number below zero.
    Descending,
    /// `"hashed"`: the 64-bit hash of the value stands for it.
    Hashed,
    /// `"2dsphere"` and `"2d"`: the ids of cells stand for it.
    Place,
    /// `"2dsphere_bucket"`, of the measurements of a bucket.
    MeasuredPlace,
    /// `"text"`: the terms of the indexed texts ([`super::text`]).
    Text,
}

impl FieldKind {
    /// Whether the field holds places.
    pub fn is_place(self) -> bool {
        matches!(self, FieldKind::Place | FieldKind::MeasuredPlace)
    }
}

/// One field of a key pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// The dotted path.
    pub path: String,
    /// The names on the path.
    pub names: Vec<String>,
    /// Its order.
    pub kind: FieldKind,
}

/// The definition of one index.
#[derive(Clone)]
pub struct IndexSpec {
    document: Document,
    name: String,
    fields: Vec<KeyField>,
    unique: bool,
    sparse: bool,
    predicate: Option<Predicate>,
    collation: Collation,
    /// How places are kept, and the fields that hold none.
    places: Option<(Layout, Vec<KeyField>)>,
    text: Option<Arc<TextIndex>>,
    wildcard: Option<WildcardIndex>,
}

impl fmt::Debug for IndexSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IndexSpec").field(&self.document).finish()
    }
}

impl IndexSpec {
    /// The index on `_id` that every collection has, in the collection's collation.
    pub fn id(collation: &Collation) -> IndexSpec {
        let mut document = document::doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        if let Some(spec) = collation.document() {
            document.push("collation", spec.clone());
        }
        IndexSpec {
            document,
            text: None,
            wildcard: None,
            collation: collation.clone(),
            name: "_id_".to_string(),
            fields: vec![KeyField {
                path: "_id".to_string(),
                names: vec!["_id".to_string()],
                kind: FieldKind::Ascending,
            }],
            unique: true,
            sparse: false,
            predicate: None,
            places: None,
        }
    }

    /// The index on `_id` of a clustered collection: in its order the collection is scanned. `name` is what users call it.
    pub fn clustered(collation: &Collation, name: Option<&str>) -> IndexSpec {
        let mut spec = IndexSpec::id(collation);
        spec.document.insert("name", name.unwrap_or("_id_"));
        spec.document.push("unique", true);
        spec.document.push("clustered", true);
        spec
    }

    /// Reads `{key, name?, unique?, sparse?, partialFilterExpression?, ...}` as createIndexes, the log and the catalog
    /// hold it. A missing name is generated; other members are kept and shown as they are. Errors: CannotCreateIndex
    /// (67) and what the factory answers.
    pub fn parse(spec: &Document, predicates: &PredicateFactory<'_>) -> Result<IndexSpec> {
        let Some(key) = spec.get_document("key") else {
            bail!(FAILED_TO_PARSE, "The 'key' field is a required property of an index specification");
        };
        let normalized;
        let (spec, key) = match text::is_text(key) {
            true => {
                normalized = text::normalized(spec, key)?;
                (&normalized, normalized.get_document("key").unwrap_or(key))
            }
            false => (spec, key),
        };
        let fields = validate_key_pattern(key)?;
        if let [field] = fields.as_slice()
            && field.path == "_id"
            && field.kind == FieldKind::Descending
        {
            bail!(BAD_VALUE, "The field 'key' for an _id index must be {{_id: 1}}, but got {{ _id: -1 }}");
        }
        let is_id = fields.len() == 1 && fields[0].path == "_id" && fields[0].kind == FieldKind::Ascending;
        let name = match spec.get_str("name") {
            _ if is_id => "_id_".to_string(),
            Some(name) => name.to_string(),
            None => default_name(key),
        };
        let unique = is_id || spec.get("unique").is_some_and(Value::truthy);
        check_plane(key)?;
        if unique && fields.iter().any(|f| f.kind == FieldKind::Hashed) {
            bail!(16764, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.");
        }
        let sparse = spec.get("sparse").is_some_and(Value::truthy);
        let collation = match spec.get_document("collation") {
            Some(collation) if collation.is_empty() => {
                bail!(BAD_VALUE, "The field 'collation' cannot be an empty object.")
            }
            Some(collation) => Collation::of_document(collation)?,
            None => Collation::SIMPLE,
        };
        let predicate = match spec.get_document("partialFilterExpression") {
            Some(_) if sparse => {
                bail!(CANNOT_CREATE_INDEX, "cannot mix \"partialFilterExpression\" and \"sparse\" options")
            }
            Some(filter) => Some(predicates(filter, &collation)?),
            None => None,
        };
        let wildcard = wildcard::parse(spec, &fields)?;
        let is_text = fields.iter().any(|f| f.kind == FieldKind::Text);
        if is_text && unique {
            bail!(CANNOT_CREATE_INDEX, "Index type 'text' does not support uniqueness");
        }
        if let (true, Some(collation)) = (is_text, collation.document()) {
            bail!(
                CANNOT_CREATE_INDEX,
                "Index type 'text' does not support collation: {}",
                document::shell::document(collation)
            );
        }
        let text = if is_text { Some(Arc::new(TextIndex::parse(spec)?)) } else { None };
        // A clustered index keeps the name that users gave it; inside, the index on `_id` has one name.
        let clustered = is_id && spec.get("clustered").is_some_and(Value::truthy);
        let shown_name = spec.get_str("name").filter(|_| clustered).unwrap_or(&name);
        let mut document = shown(spec, key, shown_name, &collation);
        let layout = layout(&mut document)?;
        let plain = || fields.iter().filter(|f| !f.kind.is_place()).cloned().collect();
        let places = layout.map(|layout| (layout, plain()));
        Ok(IndexSpec { document, name, fields, unique, sparse, predicate, collation, places, text, wildcard })
    }

    /// As listIndexes shows it: `{v: 2, key, name, ...options}`.
    pub fn document(&self) -> &Document {
        &self.document
    }
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The key pattern as it was given.
    pub fn key(&self) -> &Document {
        static EMPTY: Document = Document(Vec::new());
        self.document.get_document("key").unwrap_or(&EMPTY)
    }
    /// Whether this is its key pattern, whatever types the numbers have.
    pub fn has_key(&self, pattern: &Document) -> bool {
        document::compare::compare_documents(self.key(), pattern).is_eq()
    }
    /// The fields of the key pattern.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }
    /// How the index keeps places, if that is what it does.
    pub fn layout(&self) -> Option<&Layout> {
        self.places.as_ref().map(|(layout, _)| layout)
    }
    /// The fields of an index on places that hold none.
    pub(super) fn plain_fields(&self) -> &[KeyField] {
        self.places.as_ref().map_or(&[], |(_, fields)| fields)
    }
    /// Whether this is the index on `_id`.
    pub fn is_id(&self) -> bool {
        self.name == "_id_"
    }
    /// Whether it has the same keys of the same documents as another, whatever else they differ in.
    pub fn has_keys_of(&self, other: &IndexSpec) -> bool {
        let same_option = |name: &str| match (self.document.get(name), other.document.get(name)) {
            (Some(x), Some(y)) => document::compare::compare_values(&ordered(x), &ordered(y)).is_eq(),
            (None, None) => true,
            _ => false,
        };
        let kind = |s: &IndexSpec| s.layout().map(std::mem::discriminant);
        self.fields == other.fields
            && kind(self) == kind(other)
            && self.sparse == other.sparse
            && IDENTITY.iter().all(|o| same_option(o))
    }
    /// Whether it refuses the documents that another refuses, and no others.
    pub fn admits_as(&self, other: &IndexSpec) -> bool {
        let strict = |s: &IndexSpec| (s.unique, s.prepare_unique());
        strict(self) == strict(other) && self.has_keys_of(other)
    }
    /// Whether scans of the collection follow this index; it is the one on `_id`.
    pub fn is_clustered(&self) -> bool {
        self.flag("clustered")
    }
    /// What users call it: only a clustered index may be called otherwise than inside.
    pub fn shown_name(&self) -> &str {
        self.document.get_str("name").unwrap_or(&self.name)
    }
    /// Whether no two documents may have the same key.
    pub fn unique(&self) -> bool {
        self.unique
    }
    /// Whether keys of which every component is missing are left out.
    pub fn sparse(&self) -> bool {
        self.sparse
    }
    /// Whether the planner must not use it.
    pub fn hidden(&self) -> bool {
        self.flag("hidden")
    }
    /// Whether new duplicates are refused though the index is not unique yet.
    pub fn prepare_unique(&self) -> bool {
        self.flag("prepareUnique")
    }
    /// Whether some component is hashed.
    pub fn hashed(&self) -> bool {
        self.fields.iter().any(|f| f.kind == FieldKind::Hashed)
    }
    /// Seconds after which documents expire (TTL index).
    pub fn expire_after_seconds(&self) -> Option<i64> {
        self.document.get("expireAfterSeconds")?.as_f64().map(|s| s as i64)
    }
    /// What a text index reads, and how.
    pub fn text(&self) -> Option<&Arc<TextIndex>> {
        self.text.as_ref()
    }
    /// What a wildcard index reads.
    pub fn wildcard(&self) -> Option<&WildcardIndex> {
        self.wildcard.as_ref()
    }
    /// How its strings are ordered.
    pub fn collation(&self) -> &Collation {
        &self.collation
    }
    /// The filter of a partial index.
    pub fn partial_filter(&self) -> Option<&Document> {
        self.document.get_document("partialFilterExpression")
    }
    /// Whether the index covers `doc` at all.
    pub fn covers(&self, doc: Doc<'_>) -> bool {
        self.predicate.as_ref().is_none_or(|p| p(doc))
    }

    fn flag(&self, name: &str) -> bool {
        self.document.get(name).is_some_and(Value::truthy)
    }

    /// Sets or removes an option that leaves the entries as they are (`hidden`, `expireAfterSeconds`, `prepareUnique`).
    pub(crate) fn set_option(&mut self, name: &str, value: Option<Value>) {
        match value {
            Some(value) => self.document.insert(name, value),
            None => {
                self.document.remove(name);
            }
        }
    }

    /// Marks as unique; the caller changes the format of the tree.
    pub(crate) fn set_unique(&mut self) {
        self.unique = true;
        self.document.insert("unique", true);
        self.document.remove("prepareUnique");
    }
}

/// Puts the members in the order listIndexes shows: `v`, `key`, `name`, the rest as given, a collation with all its
/// members unless it is the simple one.
fn shown(spec: &Document, key: &Document, name: &str, collation: &Collation) -> Document {
    let mut shown = document::doc! { "v": 2 };
    shown.push("key", key.clone());
    shown.push("name", name);
    for (option, value) in spec.iter() {
        let dropped = ["v", "key", "name", "ns", "dropDups", "createIndexes"];
        let default = matches!(option, "unique" | "sparse" | "hidden" | "prepareUnique") && !value.truthy();
        match (option, collation.document()) {
            ("collation", Some(full)) => shown.push(option, full.clone()),
            ("collation", None) => {}
            _ if !dropped.contains(&option) && !default => shown.push(option, value.clone()),
            _ => {}
        }
    }
    shown
}

/// A place on a plane is the first field of its index, and the only one of its kind.
fn check_plane(key: &Document) -> Result<()> {
    let kinds = key.iter().map(|(_, kind)| kind.as_str() == Some("2d"));
    let planes: Vec<usize> = kinds.enumerate().filter(|(_, plane)| *plane).map(|(at, _)| at).collect();
    match planes.as_slice() {
        [] | [0] => Ok(()),
        [_] => bail!(16800, "2d has to be first in index"),
        _ => bail!(16800, "can't have 2 geo fields"),
    }
}

/// How an index on places keeps them, by its options; the version is put into the document.
fn layout(document: &mut Document) -> Result<Option<Layout>> {
    let kinds = document.get_document("key").into_iter().flat_map(|key| key.iter());
    let kind = kinds.filter_map(|(_, v)| v.as_str()).find(|kind| ["2d", "2dsphere", MEASURED].contains(kind));
    let Some(kind) = kind.map(str::to_string) else { return Ok(None) };
    for name in ["2dsphereIndexVersion", "finestIndexedLevel", "coarsestIndexedLevel", "bits", "min", "max"] {
        if let Some(v) = document.get(name).filter(|v| !v.is_number()) {
            bail!(
                TYPE_MISMATCH,
                "The field '{name}' must be a number, but got {} (the index is of kind '{kind}')",
                v.type_name()
            );
        }
    }
    let number = |name: &str| document.get(name).and_then(document::number::as_f64);
    if kind != "2d" {
        let version = number("2dsphereIndexVersion").unwrap_or(3.0);
        if ![1.0, 2.0, 3.0].contains(&version) {
            bail!(
                CANNOT_CREATE_INDEX,
                "unsupported geo index version {{ 2dsphereIndexVersion : {version} }}, only support versions: [1,2,3]"
            );
        }
        let defaults = Levels::default();
        let level = |name: &str, default: u8| match number(name) {
            None => Ok(default),
            Some(n) if (0.0..=30.0).contains(&n) => Ok(n as u8),
            Some(n) => bail!(
                16747 + i32::from(name == "finestIndexedLevel"),
                "{name} must be between 0 and 30, found {n}"
            ),
        };
        let coarsest = level("coarsestIndexedLevel", defaults.coarsest)?;
        let finest = level("finestIndexedLevel", defaults.finest)?;
        if coarsest > finest {
            bail!(16747, "finestIndexedLevel must be >= 0 and not below coarsestIndexedLevel");
        }
        if document.get("2dsphereIndexVersion").is_none() {
            document.push("2dsphereIndexVersion", 3);
        }
        return Ok(Some(Layout::Sphere(Levels { coarsest, finest, ..defaults })));
    }
    // They are shown in this order, the region as doubles.
    for name in ["bits", "min", "max"] {
        let Some(given) = document.get(name).cloned() else { continue };
        document.remove(name);
        let n = document::number::as_f64(&given).filter(|_| name != "bits");
        document.push(name, n.map_or(given, Value::Double));
    }
    let number = |name: &str| document.get(name).and_then(document::number::as_f64);
    let defaults = Grid::default();
    let (min, max) = (number("min").unwrap_or(defaults.min), number("max").unwrap_or(defaults.max));
    let bits = number("bits").unwrap_or(f64::from(defaults.bits));
    if !(1.0..=32.0).contains(&bits) {
        bail!(INVALID_OPTIONS, "bits for hash must be > 0 and <= 32, but {bits} bits were specified");
    }
    if !min.is_finite() || !max.is_finite() || min >= max {
        bail!(
            INVALID_OPTIONS,
            "region for hash must be valid and have positive area, but [{min}, {max}] was specified"
        );
    }
    Ok(Some(Layout::Plane(Grid { min, max, bits: bits as u8 })))
}

/// `a_1_b_-1`: names and directions joined by underscores.
pub fn default_name(key: &Document) -> String {
    let mut name = String::new();
    for (field, direction) in key.iter() {
        if !name.is_empty() {
            name.push('_');
        }
        name.push_str(field);
        name.push('_');
        match direction {
            Value::String(plugin) => name.push_str(plugin),
            other => match other.as_i64() {
                Some(n) => name.push_str(&n.to_string()),
                None => name.push_str(&other.as_f64().unwrap_or(0.0).to_string()),
            },
        }
    }
    name
}

/// The kind of an index on places of measurements, which only buckets have.
pub const MEASURED: &str = "2dsphere_bucket";

const PLUGINS: [&str; 7] = ["hashed", "text", "2d", "2dsphere", MEASURED, "wildcard", "columnstore"];

/// Checks a key pattern and takes it apart. Errors: CannotCreateIndex (67) with the real texts; NotImplemented (238)
/// for an index kind that the real server has.
pub fn validate_key_pattern(key: &Document) -> Result<Vec<KeyField>> {
    if key.is_empty() {
        bail!(CANNOT_CREATE_INDEX, "Index keys cannot be an empty object.");
    }
    if key.to_vec().len() > 2048 {
        bail!(CANNOT_CREATE_INDEX, "Index key pattern too large.");
    }
    if key.len() > 32 {
        bail!(13103, "Index key pattern has too many fields: at most 32 are allowed");
    }
    let plugin = key.iter().find_map(|(_, v)| v.as_str());
    if let Some(plugin) = plugin
        && !PLUGINS.contains(&plugin)
    {
        bail!(CANNOT_CREATE_INDEX, "Unknown index plugin '{plugin}'");
    }
    let fields =
        key.iter().map(|(path, value)| key_field(path, value, plugin)).collect::<Result<Vec<_>>>()?;
    for (i, field) in fields.iter().enumerate() {
        if fields[..i].iter().any(|f| f.path == field.path) {
            bail!(
                CANNOT_CREATE_INDEX,
                "The field '{}' appears more than once in the index key pattern",
                field.path
            );
        }
    }
    let hashed = fields.iter().filter(|f| f.kind == FieldKind::Hashed).count();
    if hashed > 1 {
        let key = document::shell::document(key);
        bail!(
            31303,
            "A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {key}"
        );
    }
    Ok(fields)
}

fn key_field(path: &str, value: &Value, plugin: Option<&str>) -> Result<KeyField> {
    let kind = field_kind(path, value, plugin)?;
    let names: Vec<String> = path.split('.').map(str::to_string).collect();
    if names.iter().any(String::is_empty) {
        bail!(CANNOT_CREATE_INDEX, "Index keys cannot contain an empty field.");
    }
    let plain = &names[..names.len() - usize::from(wildcard::is_wildcard(path))];
    for (i, name) in plain.iter().enumerate() {
        let reference = i > 0 && ["$id", "$db", "$ref"].contains(&name.as_str());
        if name.starts_with('$') && !reference {
            bail!(
                CANNOT_CREATE_INDEX,
                "Index key contains an illegal field name: field name starts with '$'."
            );
        }
    }
    Ok(KeyField { path: path.to_string(), names, kind })
}

fn field_kind(path: &str, value: &Value, plugin: Option<&str>) -> Result<FieldKind> {
    if let Value::String(kind) = value {
        return match kind.as_str() {
            "wildcard" if !wildcard::is_wildcard(path) => {
                bail!(7246202, "The key of a wildcard index must be a number, not the string 'wildcard'")
            }
            other if wildcard::is_wildcard(path) => {
                bail!(CANNOT_CREATE_INDEX, "The key of a wildcard index cannot be of kind '{other}'")
            }
            other if Some(other) != plugin => {
                bail!(CANNOT_CREATE_INDEX, "Can't use more than one index plugin for a single index.")
            }
            "hashed" => Ok(FieldKind::Hashed),
            "2d" | "2dsphere" => Ok(FieldKind::Place),
            MEASURED if path.starts_with("data.") => Ok(FieldKind::MeasuredPlace),
            "text" => Ok(FieldKind::Text),
            other => bail!(NOT_IMPLEMENTED, "indexes of kind '{other}' are not implemented"),
        };
    }
    match document::number::as_f64(value) {
        Some(n) if n.is_nan() => bail!(CANNOT_CREATE_INDEX, "Values in the index key pattern cannot be NaN."),
        Some(0.0) => bail!(CANNOT_CREATE_INDEX, "Values in the index key pattern cannot be 0."),
        Some(n) if n > 0.0 => Ok(FieldKind::Ascending),
        Some(_) => Ok(FieldKind::Descending),
        None => bail!(
            CANNOT_CREATE_INDEX,
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
            value.type_name()
        ),
    }
}

/// How a wanted index stands to an existing one.
#[derive(Debug, PartialEq, Eq)]
pub enum SpecConflict {
    /// They may stand beside each other.
    None,
    /// They are the same: creating it again changes nothing.
    Identical,
}

/// Options that make two indexes different indexes, next to the key pattern.
const IDENTITY: [&str; 3] = ["collation", "partialFilterExpression", "wildcardProjection"];
/// Members that say nothing about what an index is.
const IGNORED: [&str; 11] = [
    "originalSpec",
    "v",
    "key",
    "name",
    "unique",
    "sparse",
    "background",
    "collation",
    "partialFilterExpression",
    "wildcardProjection",
    "clustered",
];

/// Compares. Errors: IndexOptionsConflict (85), IndexKeySpecsConflict (86).
pub fn conflict(wanted: &IndexSpec, existing: &IndexSpec) -> Result<SpecConflict> {
    if wanted.text.is_some() && existing.text.is_some() && options(wanted) != options(existing) {
        bail!(
            INDEX_OPTIONS_CONFLICT,
            "only one text index per collection allowed, found existing text index \"{}\"",
            existing.name
        );
    }
    let same_name = wanted.name == existing.name;
    let same_identity = same_identity(wanted, existing);
    let same_options = same_identity && options(wanted) == options(existing);
    let texts = || {
        let text = |s: &IndexSpec| document::shell::document(&s.document);
        format!("Requested index: {}, existing index: {}", text(wanted), text(existing))
    };
    match (same_name, same_identity, same_options) {
        (true, false, _) => bail!(
            INDEX_KEY_SPECS_CONFLICT,
            "An existing index has the same name as the requested index. When index names are not specified, they are \
             auto generated and can cause conflicts. Please refer to our documentation. {}",
            texts()
        ),
        (true, true, false) => bail!(
            INDEX_OPTIONS_CONFLICT,
            "An equivalent index already exists with the same name but different options. {}",
            texts()
        ),
        (true, true, true) => Ok(SpecConflict::Identical),
        (false, true, true) => {
            bail!(INDEX_OPTIONS_CONFLICT, "Index already exists with a different name: {}", existing.name)
        }
        (false, true, false) => bail!(
            INDEX_OPTIONS_CONFLICT,
            "An equivalent index already exists with a different name and options. {}",
            texts()
        ),
        (false, false, _) => Ok(SpecConflict::None),
    }
}

/// A value of an option with the members of each `$and` and `$or` in one order, which says nothing about which documents pass.
fn ordered(v: &Value) -> Value {
    let members = |d: &Document| Document(d.iter().map(|(name, v)| (name.to_string(), ordered(v))).collect());
    match v {
        Value::Document(d) => {
            let mut d = members(d);
            for (name, v) in &mut d.0 {
                if let ("$and" | "$or", Value::Array(parts)) = (name.as_str(), v) {
                    parts.sort_by(document::compare::compare_values);
                }
            }
            Value::Document(d)
        }
        Value::Array(items) => Value::Array(items.iter().map(ordered).collect()),
        other => other.clone(),
    }
}

fn same_identity(a: &IndexSpec, b: &IndexSpec) -> bool {
    a.unique == b.unique && a.has_keys_of(b)
}

fn options(spec: &IndexSpec) -> Vec<(&str, &Value)> {
    let mut options: Vec<_> = spec.document.iter().filter(|(name, _)| !IGNORED.contains(name)).collect();
    options.sort_by_key(|(name, _)| *name);
    options
}
