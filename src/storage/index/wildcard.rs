//! The keys of a document in a wildcard index, and what such an index may not be.
//!
//! ```text
//! {"$**": 1}              path, value
//! {a: 1, "b.$**": -1}     a, path, value
//! ```
//! A document without a path in scope is not in the index, unless other fields stand beside: then it has one key whose path and
//! value are MinKey, so that those fields alone can be searched. Fields beside the wildcard are never arrays.

use super::keys::{EmitAny, for_each_plain_key};
use super::spec::{FieldKind, KeyField};
use document::wildcard::Wildcard;
use document::{Collation, Doc, Document, Result, Value, ValueRef, bail, key_string};
use std::sync::Arc;

/// The part of a definition that makes it a wildcard index.
#[derive(Clone, Debug)]
pub struct WildcardIndex {
    /// The position of the wildcard among the fields.
    pub at: usize,
    pub scope: Arc<Wildcard>,
    /// The other fields.
    beside: Vec<KeyField>,
}

/// Whether a path of a key pattern ends in the wildcard.
pub fn is_wildcard(path: &str) -> bool {
    path == "$**" || path.ends_with(".$**")
}

/// The wildcard of a definition. Errors: CannotCreateIndex (67), FailedToParse (9), BadValue (2), 7246201, 7246209.
pub(super) fn parse(spec: &Document, fields: &[KeyField]) -> Result<Option<WildcardIndex>> {
    let projection = spec.get_document("wildcardProjection");
    let mut wildcards = fields.iter().enumerate().filter(|(_, f)| is_wildcard(&f.path));
    let Some((at, field)) = wildcards.next() else {
        if projection.is_some() {
            bail!(BAD_VALUE, "The field 'wildcardProjection' is only allowed in a wildcard index");
        }
        return Ok(None);
    };
    if wildcards.next().is_some() {
        bail!(7246201, "wildcard indexes do not allow compounding on multiple wildcard fields");
    }
    check_options(spec)?;
    if fields.iter().any(|f| !matches!(f.kind, FieldKind::Ascending | FieldKind::Descending)) {
        bail!(CANNOT_CREATE_INDEX, "Index type 'wildcard' cannot be combined with another index type");
    }
    match projection {
        Some(p) if p.is_empty() => {
            bail!(FAILED_TO_PARSE, "The 'wildcardProjection' field can't be an empty object")
        }
        Some(_) if field.path != "$**" => bail!(
            FAILED_TO_PARSE,
            "The field 'wildcardProjection' is only allowed when 'key' is {{\"$**\": ±1}}, but the wildcard is '{}'",
            field.path
        ),
        _ => {}
    }
    let scope = Wildcard::parse(&field.path, projection);
    let beside: Vec<KeyField> =
        fields.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, f)| f.clone()).collect();
    if let Some(field) = beside.iter().find(|f| scope.touches(&f.path)) {
        match projection {
            Some(_) => bail!(
                7246209,
                "wildcardProjection of a compound wildcard index must exclude the field '{}' of its key",
                field.path
            ),
            None => bail!(
                CANNOT_CREATE_INDEX,
                "the field '{}' beside the wildcard must be outside its scope; a wildcardProjection can exclude it",
                field.path
            ),
        }
    }
    Ok(Some(WildcardIndex { at, scope: Arc::new(scope), beside }))
}

fn check_options(spec: &Document) -> Result<()> {
    for option in ["unique", "sparse", "prepareUnique"] {
        if spec.get(option).is_some_and(Value::truthy) {
            bail!(CANNOT_CREATE_INDEX, "Index type 'wildcard' does not support the {option} option");
        }
    }
    if spec.contains_key("expireAfterSeconds") {
        bail!(CANNOT_CREATE_INDEX, "Index type 'wildcard' cannot be a TTL index");
    }
    if spec.get("v").and_then(Value::as_f64) == Some(1.0) {
        bail!(CANNOT_CREATE_INDEX, "Cannot create wildcard index with v=1: it needs v=2");
    }
    Ok(())
}

impl WildcardIndex {
    /// Calls `f` with the components of each key: those of the fields, that of the wildcard being two.
    ///
    /// # Errors
    /// 7246301 for an array in a field beside the wildcard, and those of `f`.
    pub(super) fn for_each_key(&self, doc: Doc<'_>, f: &mut EmitAny<'_>) -> Result<()> {
        let mut beside = Vec::new();
        let multikey = !self.beside.is_empty()
            && !for_each_plain_key(&self.beside, false, doc, &mut |values| {
                beside = values.to_vec();
                Ok(())
            })?
            .is_empty();
        if multikey {
            bail!(
                7246301,
                "a field beside the wildcard of a compound wildcard index cannot hold an array: {}",
                self.beside.iter().map(|f| f.path.as_str()).collect::<Vec<_>>().join(", ")
            );
        }
        let (mut any, mut done) = (false, Ok(()));
        self.scope.for_each(doc, &mut |path, value| {
            any = true;
            if done.is_ok() {
                done = f(&self.components(&beside, ValueRef::String(path), value));
            }
        });
        if !any && !beside.is_empty() {
            return f(&self.components(&beside, ValueRef::MinKey, ValueRef::MinKey));
        }
        done
    }

    fn components<'v>(
        &self,
        beside: &[ValueRef<'v>],
        path: ValueRef<'v>,
        value: ValueRef<'v>,
    ) -> Vec<ValueRef<'v>> {
        let (before, after) = beside.split_at(self.at.min(beside.len()));
        [before, &[path, value], after].concat()
    }

    /// Appends the encoding of one key's components. Paths are in plain order whatever the collation.
    pub(super) fn encode(
        &self,
        fields: &[KeyField],
        collation: &Collation,
        components: &[ValueRef<'_>],
        out: &mut Vec<u8>,
    ) {
        let mut components = components.iter();
        for (i, field) in fields.iter().enumerate() {
            if i == self.at
                && let Some(path) = components.next()
            {
                key_string::append(out, *path, false);
            }
            if let Some(value) = components.next() {
                collation.append_key(out, *value, field.kind == FieldKind::Descending);
            }
        }
    }
}
