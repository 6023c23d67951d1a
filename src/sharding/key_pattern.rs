//! Shard key patterns: which fields, which of them hashed, and the key of a document.
//!
//! A key is used in two forms: the document of its fields, as metadata stores it, and its encoded bytes
//! (`document::key_string`), which order as the keys do and are what routing compares.

use document::{Doc, DocBuf, DocWriter, Document, Result, Value, ValueRef, bail, hash, key_string, path};

/// A validated shard key pattern such as `{state: 1, _id: "hashed"}`.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardKeyPattern {
    fields: Vec<Field>,
    document: Document,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub path: String,
    pub hashed: bool,
}

impl ShardKeyPattern {
    /// # Errors
    /// BadValue (2) with the real server's text for what cannot be a shard key.
    pub fn parse(pattern: &Document) -> Result<ShardKeyPattern> {
        if pattern.is_empty() {
            bail!(BAD_VALUE, "Shard key is empty");
        }
        let mut fields = Vec::new();
        for (path, value) in pattern.iter() {
            if path.is_empty() || path.split('.').any(|p| p.is_empty() || p.starts_with('$')) {
                bail!(BAD_VALUE, "Field {path} contains parts that are not valid in a shard key");
            }
            let hashed = match value {
                Value::String(s) if s == "hashed" && fields.iter().all(|f: &Field| !f.hashed) => true,
                v if v.as_f64() == Some(1.0) => false,
                _ => bail!(
                    BAD_VALUE,
                    "Shard key {} can contain either a single 'hashed' field or multiple numerical fields set to a value of 1. Failed to parse field {path}",
                    document::shell::document(pattern)
                ),
            };
            if fields.iter().any(|f: &Field| f.path == path) {
                bail!(BAD_VALUE, "Shard key contains duplicate field {path}");
            }
            fields.push(Field { path: path.to_string(), hashed });
        }
        Ok(ShardKeyPattern { fields, document: pattern.clone() })
    }
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }
    pub fn document(&self) -> &Document {
        &self.document
    }
    pub fn is_hashed(&self) -> bool {
        self.fields.iter().any(|f| f.hashed)
    }
    /// The key hashes its first field: new collections are spread at once.
    pub fn is_hashed_prefix(&self) -> bool {
        self.fields.first().is_some_and(|f| f.hashed)
    }
    /// Whether an index on `index_key` can serve this shard key: the key's fields are its first fields, in order and kind.
    pub fn is_prefix_of(&self, index_key: &Document) -> bool {
        index_key.len() >= self.fields.len()
            && self.fields.iter().zip(index_key.iter()).all(|(f, (name, value))| {
                f.path == name
                    && match value {
                        Value::String(s) => f.hashed && s == "hashed",
                        v => !f.hashed && v.as_f64().is_some_and(|n| n == 1.0),
                    }
            })
    }

    /// The encoded key of a document. A missing field counts as null.
    ///
    /// # Errors
    /// ShardKeyNotFound (61) when a key field is an array or lies in one.
    pub fn key_of(&self, doc: Doc<'_>) -> Result<Vec<u8>> {
        let mut key = Vec::with_capacity(16 * self.fields.len());
        for field in &self.fields {
            append(&mut key, field, value_at(doc, &field.path)?);
        }
        Ok(key)
    }
    /// The key of a document as metadata stores it, hashed fields hashed.
    pub fn key_document_of(&self, doc: Doc<'_>) -> Result<Document> {
        let mut key = Document::new();
        for field in &self.fields {
            let value = value_at(doc, &field.path)?;
            let value = if field.hashed { Value::Int64(hash::hash64(value)) } else { value.to_value() };
            key.push(field.path.as_str(), value);
        }
        Ok(key)
    }
    /// `{<key fields>, _id}` of a document, the fields unhashed and under their whole paths: how log entries name it. A
    /// field without a usable value is left out.
    pub fn document_key_of(&self, doc: Doc<'_>) -> DocBuf {
        DocWriter::build(|w| {
            for field in &self.fields {
                if let Ok(value) = value_at(doc, &field.path) {
                    w.value(&field.path, value);
                }
            }
            if let Some(id) = doc.element("_id").filter(|_| self.fields.iter().all(|f| f.path != "_id")) {
                w.element(&id);
            }
        })
    }
    /// The encoded key of what [`ShardKeyPattern::document_key_of`] made; `None` when it lacks a field.
    pub fn key_of_document_key(&self, key: Doc<'_>) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(16 * self.fields.len());
        for field in &self.fields {
            append(&mut out, field, key.get(&field.path)?);
        }
        Some(out)
    }
    /// The raw (unhashed) key fields of a document, for a filter that finds it again.
    pub fn fields_of(&self, doc: Doc<'_>) -> Result<Document> {
        let mut key = Document::new();
        for field in &self.fields {
            key.push(field.path.as_str(), value_at(doc, &field.path)?.to_value());
        }
        Ok(key)
    }
    /// Encodes a chunk bound, whose values are final (hashed already).
    ///
    /// # Errors
    /// BadValue (2) when the fields are not exactly the key's, in order.
    pub fn encode_bound(&self, bound: &Document) -> Result<Vec<u8>> {
        if !self.is_full_key(bound) {
            bail!(
                BAD_VALUE,
                "{} is not a full shard key of {}",
                document::shell::document(bound),
                document::shell::document(&self.document)
            );
        }
        let mut key = Vec::with_capacity(16 * self.fields.len());
        for (_, value) in bound.iter() {
            key_string::append_value(&mut key, value, false);
        }
        Ok(key)
    }
    /// Exactly the key's fields in the key's order.
    pub fn is_full_key(&self, key: &Document) -> bool {
        key.len() == self.fields.len() && self.fields.iter().zip(key.keys()).all(|(f, name)| f.path == name)
    }
    /// Adds `fill` for the key's fields that a prefix bound lacks; `None` when `bound` is no prefix of the key.
    pub fn extend_bound(&self, bound: &Document, fill: Value) -> Option<Document> {
        if bound.len() > self.fields.len()
            || !self.fields.iter().zip(bound.keys()).all(|(f, name)| f.path == name)
        {
            return None;
        }
        let mut full = bound.clone();
        for field in &self.fields[bound.len()..] {
            full.push(field.path.as_str(), fill.clone());
        }
        Some(full)
    }
    /// A bound of a key that this one refines: the new fields begin at MinKey, but at the end of the key space. `None` when
    /// this pattern does not begin with the bound's fields.
    pub fn refined_bound(&self, bound: &Document) -> Option<Document> {
        let at_the_end = bound.iter().all(|(_, v)| *v == Value::MaxKey);
        self.extend_bound(bound, if at_the_end { Value::MaxKey } else { Value::MinKey })
    }
    /// Whether the key of an index begins with this key's fields, whatever their kind.
    pub fn fields_begin(&self, index: &Document) -> bool {
        index.len() >= self.fields.len()
            && self.fields.iter().zip(index.keys()).all(|(f, name)| f.path == name)
    }
    /// The name of an index that is made for this key: `a_1_b_hashed`.
    pub fn index_name(&self) -> String {
        let part = |(name, value): (&str, &Value)| match value {
            Value::String(kind) => format!("{name}_{kind}"),
            _ => format!("{name}_1"),
        };
        self.document.iter().map(part).collect::<Vec<_>>().join("_")
    }
    /// Whether this key begins with all fields of the other, of the same kinds.
    pub fn extends(&self, other: &ShardKeyPattern) -> bool {
        self.fields.starts_with(&other.fields)
    }
    /// A unique index holds for the whole collection only if all documents it compares are on one shard.
    ///
    /// # Errors
    /// CannotCreateIndex (67). `simple` says that the collection compares strings byte by byte.
    pub fn check_unique(&self, spec: &Document, simple: bool) -> Result<()> {
        let pattern = spec.get_document("key").cloned().unwrap_or_default();
        let prefixed = self.fields_begin(&pattern);
        let simple = match spec.get_document("collation") {
            Some(c) => c.get_str("locale") == Some("simple"),
            None => simple,
        };
        // Strings that are equal by a collation may be on different shards.
        let unique = spec.get("unique").is_some_and(Value::truthy);
        if unique && !pattern.keys().eq(["_id"]) && !(prefixed && simple) {
            let shown = |d: &Document| document::shell::document(d);
            bail!(
                CANNOT_CREATE_INDEX,
                "cannot create unique index over {} with shard key pattern {}",
                shown(&pattern),
                shown(&self.document)
            );
        }
        Ok(())
    }
    pub fn global_min(&self) -> Document {
        self.fields.iter().map(|f| (f.path.clone(), Value::MinKey)).collect()
    }
    /// The first field whose value in a document is an array, or below one.
    pub fn array_in(&self, doc: Doc<'_>) -> Option<&str> {
        self.fields.iter().map(|f| f.path.as_str()).find(|path| value_at(doc, path).is_err())
    }
    pub fn global_max(&self) -> Document {
        self.fields.iter().map(|f| (f.path.clone(), Value::MaxKey)).collect()
    }
}

fn append(key: &mut Vec<u8>, field: &Field, value: ValueRef<'_>) {
    if field.hashed {
        key_string::append(key, ValueRef::Int64(hash::hash64(value)), false);
    } else {
        key_string::append(key, value, false);
    }
}

/// The value at a dotted path through documents only; missing and undefined are null; arrays are refused.
fn value_at<'a>(doc: Doc<'a>, dotted: &str) -> Result<ValueRef<'a>> {
    let mut current = doc;
    let mut rest = dotted;
    while let Some((head, tail)) = rest.split_once('.') {
        match current.get(head) {
            Some(ValueRef::Document(d)) => current = d,
            Some(ValueRef::Array(_)) => return array_refused(),
            _ => return Ok(ValueRef::Null),
        }
        rest = tail;
    }
    match path::get(current, rest) {
        None | Some(ValueRef::Undefined) => Ok(ValueRef::Null),
        Some(ValueRef::Array(_)) => array_refused(),
        Some(v) => Ok(v),
    }
}

fn array_refused<T>() -> Result<T> {
    bail!(SHARD_KEY_NOT_FOUND, "Shard key cannot contain array values or array descendants.")
}
