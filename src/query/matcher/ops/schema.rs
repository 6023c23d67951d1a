//! `$jsonSchema`: the draft 4 keywords that validators use.
//!
//! A keyword constrains only values of its own type: `minimum` says nothing of strings. Keywords we do not have are refused by name.

use super::element;
use crate::QueryContext;
use crate::fields::Fields;
use crate::matcher::ast::{Node, TypeSet};
use crate::matcher::pattern::Pattern;
use crate::merge_sort::merge_sort;
use crate::names::Names;
use document::compare::compare;
use document::{Doc, DocBuf, DocWriter, Element, Result, Value, ValueRef, bail, meter, number};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Schema {
    types: Option<TypeSet>,
    encrypted: Option<Encrypted>,
    required: Vec<String>,
    /// Those of one name, of which a schema may speak more than once.
    properties: Names<Vec<Schema>>,
    pattern_properties: Vec<(Pattern, Schema)>,
    additional: Additional,
    /// Each in a document of its own, in the order of values.
    enumeration: Option<Vec<DocBuf>>,
    minimum: Option<(Value, bool)>,
    maximum: Option<(Value, bool)>,
    multiple_of: Option<Value>,
    length: (Option<usize>, Option<usize>),
    pattern: Option<Pattern>,
    item_count: (Option<usize>, Option<usize>),
    field_count: (Option<usize>, Option<usize>),
    unique_items: bool,
    items: Option<Box<Schema>>,
    item_list: Option<Vec<Schema>>,
    additional_items: Additional,
    dependencies: Vec<(String, Dependency)>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
}

#[derive(Debug, Default)]
enum Additional {
    #[default]
    Allowed,
    Forbidden,
    Schema(Box<Schema>),
}

/// `encrypt`: the value is encrypted, and was of one of these types before, where some are given.
#[derive(Debug)]
struct Encrypted {
    types: Option<TypeSet>,
}

/// The subtype of binary data that is encrypted.
const ENCRYPTED_SUBTYPE: u8 = 6;

#[derive(Debug)]
enum Dependency {
    Fields(Vec<String>),
    Schema(Box<Schema>),
}

pub fn json_schema(e: Element<'_>, _: &QueryContext) -> Result<Node> {
    let ValueRef::Document(d) = e.value() else { bail!(TYPE_MISMATCH, "$jsonSchema must be an object") };
    Ok(Node::Schema(Arc::new(Schema::parse(d)?)))
}

fn document<'a>(e: &Element<'a>) -> Result<Doc<'a>> {
    match e.value() {
        ValueRef::Document(d) => Ok(d),
        _ => bail!(TYPE_MISMATCH, "$jsonSchema keyword '{}' must be an object", e.name()),
    }
}
fn array<'a>(e: &Element<'a>) -> Result<Doc<'a>> {
    match e.value() {
        ValueRef::Array(d) => Ok(d),
        _ => bail!(TYPE_MISMATCH, "$jsonSchema keyword '{}' must be an array", e.name()),
    }
}
fn count(e: &Element<'_>) -> Result<Option<usize>> {
    let v = e.value();
    if !v.is_number() {
        bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{}' must be a number", e.name());
    }
    match number::to_i64_exact(&v.to_value()) {
        Some(n) if n >= 0 => Ok(Some(n as usize)),
        _ => bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{}' must be a non-negative integer", e.name()),
    }
}
fn numeric(e: &Element<'_>) -> Result<Value> {
    match e.value() {
        v if v.is_number() => Ok(v.to_value()),
        _ => bail!(TYPE_MISMATCH, "$jsonSchema keyword '{}' must be a number", e.name()),
    }
}
fn positive(e: &Element<'_>) -> Result<Value> {
    let v = numeric(e)?;
    if number::as_f64(&v).is_none_or(|d| d.is_nan() || d <= 0.0) {
        bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{}' must have a positive value", e.name());
    }
    Ok(v)
}
fn boolean(e: &Element<'_>) -> Result<bool> {
    match e.value() {
        ValueRef::Boolean(b) => Ok(b),
        _ => bail!(TYPE_MISMATCH, "$jsonSchema keyword '{}' must be a boolean", e.name()),
    }
}
fn names(e: &Element<'_>) -> Result<Vec<String>> {
    let (mut out, mut seen) = (Vec::new(), HashSet::new());
    for item in array(e)? {
        meter::spend(1)?;
        match item.value() {
            ValueRef::String(s) if seen.insert(s) => out.push(s.to_string()),
            ValueRef::String(s) => bail!(
                FAILED_TO_PARSE,
                "$jsonSchema keyword '{}' array cannot contain duplicate values: {s}",
                e.name()
            ),
            _ => bail!(TYPE_MISMATCH, "$jsonSchema keyword '{}' must be an array of strings", e.name()),
        }
    }
    if out.is_empty() {
        bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{}' cannot be an empty array", e.name());
    }
    Ok(out)
}
fn schemas(e: &Element<'_>) -> Result<Vec<Schema>> {
    let mut out = Vec::new();
    for item in array(e)? {
        out.push(Schema::parse(document(&item)?)?);
    }
    if out.is_empty() {
        bail!(BAD_VALUE, "$jsonSchema keyword '{}' must be a nonempty array", e.name());
    }
    Ok(out)
}
/// The values of `enum`, in order.
fn values(e: &Element<'_>) -> Result<Vec<DocBuf>> {
    let mut out = Vec::new();
    for item in array(e)? {
        out.push(DocWriter::build(|w| w.element_as("", &item)));
    }
    merge_sort(&mut out, |a, b| compare(one(a), one(b)))?;
    Ok(out)
}
fn additional(e: &Element<'_>) -> Result<Additional> {
    match e.value() {
        ValueRef::Boolean(true) => Ok(Additional::Allowed),
        ValueRef::Boolean(false) => Ok(Additional::Forbidden),
        ValueRef::Document(d) => Ok(Additional::Schema(Box::new(Schema::parse(d)?))),
        _ => bail!(TYPE_MISMATCH, "$jsonSchema keyword '{}' must be either an object or a boolean", e.name()),
    }
}
fn bson_types(e: &Element<'_>) -> Result<TypeSet> {
    let is_text = |v: ValueRef<'_>| matches!(v, ValueRef::String(_));
    let texts = match e.value() {
        ValueRef::Array(list) => list.iter().all(|item| is_text(item.value())),
        v => is_text(v),
    };
    if !texts {
        bail!(TYPE_MISMATCH, "$jsonSchema keyword 'bsonType' must be either a string or an array of strings");
    }
    let integer = match e.value() {
        ValueRef::Array(list) => list.iter().any(|item| item.value() == ValueRef::String("integer")),
        v => v == ValueRef::String("integer"),
    };
    if integer {
        bail!(FAILED_TO_PARSE, "$jsonSchema type 'integer' is not currently supported.");
    }
    element::type_set(e.value(), "$jsonSchema keyword 'bsonType'")
}
fn json_types(e: &Element<'_>) -> Result<TypeSet> {
    let mut set = TypeSet::default();
    let one = |set: &mut TypeSet, v: ValueRef<'_>| -> Result<()> {
        match v {
            ValueRef::String("number") => set.any_number = true,
            ValueRef::String("boolean") => set.insert(0x08),
            ValueRef::String(s @ ("string" | "object" | "array" | "null")) => {
                set.insert(element::tag_of_alias(s)?)
            }
            ValueRef::String("integer") => {
                bail!(FAILED_TO_PARSE, "$jsonSchema type 'integer' is not currently supported.")
            }
            ValueRef::String(s) => bail!(BAD_VALUE, "Unknown type name alias: {s}"),
            _ => bail!(
                TYPE_MISMATCH,
                "$jsonSchema keyword 'type' must be either a string or an array of strings"
            ),
        }
        Ok(())
    };
    match e.value() {
        ValueRef::Array(list) => list.iter().try_for_each(|item| one(&mut set, item.value()))?,
        v => one(&mut set, v)?,
    }
    Ok(set)
}

/// `encrypt` or `encryptMetadata`, of which the server checks that they are well formed.
///
/// # Errors
/// TypeMismatch, BadValue, 40415 for another member, 51084, 51085 and 51088 for a `keyId` that is none.
fn encryption<'a>(e: &Element<'a>) -> Result<Doc<'a>> {
    const ALGORITHMS: [&str; 2] =
        ["AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic", "AEAD_AES_256_CBC_HMAC_SHA_512-Random"];
    let (keyword, members) = (e.name(), document(e)?);
    for member in members {
        match (member.name(), member.value()) {
            ("algorithm", ValueRef::String(name)) if ALGORITHMS.contains(&name) => {}
            ("algorithm", ValueRef::String(name)) => bail!(
                BAD_VALUE,
                "Enumeration value '{name}' for field '{keyword}.algorithm' is not a valid value."
            ),
            ("algorithm", v) => bail!(
                TYPE_MISMATCH,
                "BSON field '{keyword}.algorithm' is the wrong type '{}', expected type 'string'",
                v.type_name()
            ),
            ("keyId", v) => check_key_ids(v)?,
            ("bsonType", _) if keyword == "encrypt" => {}
            (other, _) => bail!(40415, "BSON field '{keyword}.{other}' is an unknown field."),
        }
    }
    Ok(members)
}

fn check_key_ids(v: ValueRef<'_>) -> Result<()> {
    const UUID_SUBTYPE: u8 = 4;
    match v {
        ValueRef::String(_) => Ok(()),
        ValueRef::Array(ids) => ids.iter().try_for_each(|id| match id.value() {
            ValueRef::Binary(UUID_SUBTYPE, _) => Ok(()),
            ValueRef::Binary(..) => bail!(51084, "Array elements must have bindata type UUID"),
            v => bail!(51088, "Array elements must have type BinData, found {}", v.type_name()),
        }),
        v => bail!(51085, "Expected either string or array of UUID for keyId, found {}", v.type_name()),
    }
}

impl Encrypted {
    fn parse(e: &Element<'_>) -> Result<Encrypted> {
        let types = encryption(e)?.element("bsonType").map(|types| bson_types(&types)).transpose()?;
        Ok(Encrypted { types })
    }

    /// The first byte of an encrypted value says how it was encrypted; behind the 16 bytes of its key's id stands the type it had.
    fn holds_for(&self, v: ValueRef<'_>) -> bool {
        const TYPE_AT: usize = 17;
        let ValueRef::Binary(ENCRYPTED_SUBTYPE, bytes) = v else { return false };
        let original = bytes.get(TYPE_AT).filter(|_| matches!(bytes[0], 1 | 2));
        self.types.as_ref().is_none_or(|types| original.is_some_and(|tag| types.contains(*tag)))
    }
}

/// Whether a schema that was accepted, or one within it, says that something is encrypted.
pub fn names_encryption(schema: Doc<'_>) -> bool {
    let within = |v: ValueRef<'_>| v.as_document().is_some_and(names_encryption);
    schema.iter().any(|e| match (e.name(), e.value()) {
        ("encrypt" | "encryptMetadata", _) => true,
        ("properties" | "patternProperties" | "dependencies", ValueRef::Document(named)) => {
            named.iter().any(|e| within(e.value()))
        }
        ("allOf" | "anyOf" | "oneOf" | "items", ValueRef::Array(list)) => {
            list.iter().any(|e| within(e.value()))
        }
        ("items" | "additionalItems" | "additionalProperties" | "not", v) => within(v),
        _ => false,
    })
}

/// Refuses keywords that say the same twice.
///
/// # Errors
/// FailedToParse.
fn check_one_type(d: Doc<'_>) -> Result<()> {
    let given = |name: &str| d.get(name).is_some();
    for (one, other) in [("type", "bsonType"), ("encrypt", "encryptMetadata")] {
        if given(one) && given(other) {
            bail!(FAILED_TO_PARSE, "Cannot specify both $jsonSchema keywords '{one}' and '{other}'");
        }
    }
    if let Some(other) = ["type", "bsonType"].into_iter().find(|name| given("encrypt") && given(name)) {
        bail!(
            FAILED_TO_PARSE,
            "$jsonSchema keyword 'encrypt' cannot be used in conjunction with '{other}', 'encrypt' implies type 'bsonType::BinData'"
        );
    }
    Ok(())
}

impl Schema {
    fn parse_properties(&mut self, of: Doc<'_>) -> Result<()> {
        for p in of {
            let schema = Schema::parse(document(&p)?)?;
            match self.properties.get_mut(p.name()) {
                Some(others) => others.push(schema),
                None => self.properties.push(p.name().to_string(), vec![schema]),
            }
        }
        Ok(())
    }
    /// # Errors
    /// BadValue, FailedToParse, TypeMismatch for a schema that is none.
    pub fn parse(d: Doc<'_>) -> Result<Schema> {
        let mut s = Schema::default();
        check_one_type(d)?;
        let (mut exclusive_min, mut exclusive_max) = (false, false);
        for e in d {
            meter::spend(1)?;
            match e.name() {
                "bsonType" => s.types = Some(bson_types(&e)?),
                "type" => s.types = Some(json_types(&e)?),
                "encrypt" => s.encrypted = Some(Encrypted::parse(&e)?),
                "encryptMetadata" if encryption(&e)?.is_empty() => {
                    bail!(FAILED_TO_PARSE, "$jsonSchema keyword 'encryptMetadata' cannot be an empty object ")
                }
                "encryptMetadata" => {}
                "required" => s.required = names(&e)?,
                "properties" => s.parse_properties(document(&e)?)?,
                "patternProperties" => {
                    for p in document(&e)? {
                        s.pattern_properties
                            .push((Pattern::compile(p.name(), "")?, Schema::parse(document(&p)?)?));
                    }
                }
                "additionalProperties" => s.additional = additional(&e)?,
                "enum" => s.enumeration = Some(values(&e)?),
                "minimum" => s.minimum = Some((numeric(&e)?, false)),
                "maximum" => s.maximum = Some((numeric(&e)?, false)),
                "exclusiveMinimum" => exclusive_min = boolean(&e)?,
                "exclusiveMaximum" => exclusive_max = boolean(&e)?,
                "multipleOf" => s.multiple_of = Some(positive(&e)?),
                "minLength" => s.length.0 = count(&e)?,
                "maxLength" => s.length.1 = count(&e)?,
                "pattern" => match e.value() {
                    ValueRef::String(p) => s.pattern = Some(Pattern::compile(p, "")?),
                    _ => bail!(TYPE_MISMATCH, "$jsonSchema keyword 'pattern' must be a string"),
                },
                "minItems" => s.item_count.0 = count(&e)?,
                "maxItems" => s.item_count.1 = count(&e)?,
                "minProperties" => s.field_count.0 = count(&e)?,
                "maxProperties" => s.field_count.1 = count(&e)?,
                "uniqueItems" => s.unique_items = boolean(&e)?,
                "items" => match e.value() {
                    ValueRef::Array(_) => s.item_list = Some(schemas(&e)?),
                    _ => s.items = Some(Box::new(Schema::parse(document(&e)?)?)),
                },
                "additionalItems" => s.additional_items = additional(&e)?,
                "dependencies" => s.dependencies = dependencies(document(&e)?)?,
                "allOf" => s.all_of = schemas(&e)?,
                "anyOf" => s.any_of = schemas(&e)?,
                "oneOf" => s.one_of = schemas(&e)?,
                "not" => s.not = Some(Box::new(Schema::parse(document(&e)?)?)),
                "title" | "description" if e.tag() == 0x02 => {}
                "title" | "description" => {
                    bail!(TYPE_MISMATCH, "$jsonSchema keyword '{}' must be of type string", e.name())
                }
                "$ref" | "$schema" | "default" | "definitions" | "format" | "id" => {
                    bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{}' is not currently supported", e.name())
                }
                other => bail!(FAILED_TO_PARSE, "Unknown $jsonSchema keyword: {other}"),
            }
        }
        for (exclusive, name, bound) in
            [(exclusive_min, "minimum", &mut s.minimum), (exclusive_max, "maximum", &mut s.maximum)]
        {
            match bound {
                Some(b) => b.1 = exclusive,
                None if exclusive => bail!(
                    FAILED_TO_PARSE,
                    "$jsonSchema keyword '{name}' must be a present if exclusive{name} is present"
                ),
                None => {}
            }
        }
        Ok(s)
    }

    /// Whether a document satisfies the schema.
    ///
    /// # Errors
    /// Those of [`document::meter::spend`].
    pub fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        self.holds_for(ValueRef::Document(doc))
    }

    /// Whether a value satisfies the schema, for one who explains a refusal: no, where the look at it ends early.
    pub fn accepts(&self, v: ValueRef<'_>) -> bool {
        self.holds_for(v).unwrap_or(false)
    }

    fn holds_for(&self, v: ValueRef<'_>) -> Result<bool> {
        meter::spend(1)?;
        Ok(self.types.as_ref().is_none_or(|t| t.contains(v.tag()))
            && self.encrypted.as_ref().is_none_or(|encrypted| encrypted.holds_for(v))
            && self.enumeration.as_ref().is_none_or(|list| contains(list, v))
            && self.holds_for_typed(v)?
            && all(&self.all_of, |s| s.holds_for(v))?
            && (self.any_of.is_empty() || !all(&self.any_of, |s| Ok(!s.holds_for(v)?))?)
            && self.holds_for_one(v)?
            && self.not.as_ref().map_or(Ok(true), |s| Ok(!s.holds_for(v)?))?)
    }

    /// `oneOf`.
    fn holds_for_one(&self, v: ValueRef<'_>) -> Result<bool> {
        let mut holding = 0;
        for s in &self.one_of {
            holding += usize::from(s.holds_for(v)?);
        }
        Ok(self.one_of.is_empty() || holding == 1)
    }

    fn holds_for_typed(&self, v: ValueRef<'_>) -> Result<bool> {
        match v {
            ValueRef::Document(d) => self.holds_for_document(d),
            ValueRef::Array(a) => self.holds_for_array(a),
            ValueRef::String(s) => {
                meter::spend(s.len() / BYTES_A_UNIT)?;
                Ok(within(self.length, s.chars().count())
                    && self.pattern.as_ref().map_or(Ok(true), |p| p.is_match(s.as_bytes()))?)
            }
            v if v.is_number() => Ok(self.accepts_number(v)),
            _ => Ok(true),
        }
    }

    fn accepts_number(&self, v: ValueRef<'_>) -> bool {
        let beyond = |bound: &Option<(Value, bool)>, wrong: Ordering| {
            bound.as_ref().is_some_and(|(b, exclusive)| {
                if crate::matcher::ast::is_nan(v) {
                    return !number::is_nan(b);
                }
                let order = compare(v, one(&b.to_holder()));
                order == wrong || (*exclusive && order == Ordering::Equal)
            })
        };
        !beyond(&self.minimum, Ordering::Less)
            && !beyond(&self.maximum, Ordering::Greater)
            && self.multiple_of.as_ref().is_none_or(|m| is_multiple(&v.to_value(), m))
    }

    fn holds_for_document(&self, d: Doc<'_>) -> Result<bool> {
        meter::spend(d.bytes().len() / BYTES_A_UNIT)?;
        let fields = Fields::of(d, self.required.len() + self.dependencies.len())?;
        Ok(all(&self.required, |name| has(&fields, name))?
            && within(self.field_count, d.iter().count())
            && all(&self.dependencies, |(name, rule)| Ok(!has(&fields, name)? || rule.holds(d, &fields)?))?
            && all(d.iter(), |e| self.holds_for_field(&e))?)
    }

    fn holds_for_field(&self, e: &Element<'_>) -> Result<bool> {
        let mut known = false;
        for schema in self.properties.get(e.name()).into_iter().flatten() {
            known = true;
            if !schema.holds_for(e.value())? {
                return Ok(false);
            }
        }
        for (pattern, schema) in &self.pattern_properties {
            pattern.spend(e.name_bytes().len())?;
            if pattern.is_match(e.name_bytes())? {
                known = true;
                if !schema.holds_for(e.value())? {
                    return Ok(false);
                }
            }
        }
        Ok(known || self.additional.holds_for(e.value())?)
    }

    /// The first item that is equal to one before it.
    pub fn duplicate(items: Doc<'_>) -> Option<ValueRef<'_>> {
        let mut values: Vec<(usize, ValueRef<'_>)> = items.iter().map(|e| e.value()).enumerate().collect();
        values.sort_by(|x, y| compare(x.1, y.1));
        let again = values.windows(2).filter(|w| compare(w[0].1, w[1].1) == Ordering::Equal).map(|w| w[1]);
        again.min_by_key(|(i, _)| *i).map(|(_, v)| v)
    }

    fn holds_for_array(&self, a: Doc<'_>) -> Result<bool> {
        meter::spend(a.bytes().len() / BYTES_A_UNIT)?;
        let listed = |list: &Vec<Schema>| {
            all(a.iter().enumerate(), |(i, e)| match list.get(i) {
                Some(s) => s.holds_for(e.value()),
                None => self.additional_items.holds_for(e.value()),
            })
        };
        Ok(within(self.item_count, a.iter().count())
            && self.items.as_ref().map_or(Ok(true), |s| all(a.iter(), |e| s.holds_for(e.value())))?
            && self.item_list.as_ref().map_or(Ok(true), listed)?
            && (!self.unique_items || Schema::duplicate(a).is_none()))
    }
}

/// Whether all hold; those after the first that does not are not asked.
fn all<T>(items: impl IntoIterator<Item = T>, mut holds: impl FnMut(T) -> Result<bool>) -> Result<bool> {
    for item in items {
        if !holds(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Additional {
    fn holds_for(&self, v: ValueRef<'_>) -> Result<bool> {
        match self {
            Additional::Allowed => Ok(true),
            Additional::Forbidden => Ok(false),
            Additional::Schema(s) => s.holds_for(v),
        }
    }
}

impl Dependency {
    fn holds(&self, d: Doc<'_>, fields: &Fields<'_>) -> Result<bool> {
        match self {
            Dependency::Fields(names) => all(names, |name| has(fields, name)),
            Dependency::Schema(s) => s.holds_for(ValueRef::Document(d)),
        }
    }
}

/// In decimal, where 0.3 is a multiple of 0.1.
fn is_multiple(v: &Value, of: &Value) -> bool {
    let decimal = |v: &Value| number::to_decimal(v).map(Value::Decimal128);
    let rest = decimal(v).zip(decimal(of)).and_then(|(v, of)| number::modulo(&v, &of));
    rest.and_then(|r| number::as_f64(&r)).is_some_and(|r| r == 0.0)
}

fn dependencies(d: Doc<'_>) -> Result<Vec<(String, Dependency)>> {
    let mut out = Vec::new();
    for e in d {
        let rule = match e.value() {
            ValueRef::Array(_) => Dependency::Fields(names(&e)?),
            _ => Dependency::Schema(Box::new(Schema::parse(document(&e)?)?)),
        };
        out.push((e.name().to_string(), rule));
    }
    Ok(out)
}

fn within((min, max): (Option<usize>, Option<usize>), n: usize) -> bool {
    min.is_none_or(|m| n >= m) && max.is_none_or(|m| n <= m)
}

fn one(holder: &DocBuf) -> ValueRef<'_> {
    holder.doc().iter().next().map_or(ValueRef::Null, |e| e.value())
}

/// Whether one of the values, which are in order, is equal to `v`.
fn contains(values: &[DocBuf], v: ValueRef<'_>) -> bool {
    values.binary_search_by(|value| compare(one(value), v)).is_ok()
}

/// Bytes of a document that are passed over in the time of a unit of work.
const BYTES_A_UNIT: usize = 256;

/// Whether a document has a field of this name, counted as work.
fn has(fields: &Fields<'_>, name: &str) -> Result<bool> {
    meter::spend(1)?;
    Ok(fields.get(name).is_some())
}
