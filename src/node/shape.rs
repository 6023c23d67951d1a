//! The shapes of commands: which fields one has, of which types, and the real server's errors where a client's differs.
//!
//! A shape is a table, so that a field reads alone. What a shape refuses fails the whole command, before any of its
//! statements runs:
//! ```text
//! 40415  BSON field 'update.x' is an unknown field.
//! 40413  BSON field 'update.ordered' is a duplicate field
//! 40414  BSON field 'update.updates.q' is missing but a required field
//!    14  BSON field 'update.ordered' is the wrong type 'int', expected type 'bool'
//! ```
//! A null counts as absent, and so as missing where the field is required; a field that stands twice is refused even if one is null.

use crate::generic::is_generic;
use document::{Doc, Element, Result, ValueRef, bail};

/// What a field takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Any,
    Bool,
    /// A boolean or a number.
    SafeBool,
    Number,
    String,
    Object,
    Array,
    /// An array whose items are all documents.
    Objects,
    /// The stages of a view: documents, and nulls, which count for nothing.
    Stages,
    /// A list's field `cursor`, which says nothing but the size of its batches.
    Cursor,
    /// The number 1, as the argument of a command that takes no other.
    One,
    Uuid,
    /// An index by name or by key pattern. Null is refused too.
    Hint,
    /// An update: a document or a pipeline. Null is refused too.
    Update,
    /// One index, all, or several, by name or by key pattern. What else it may not be is the command's to say, but for null.
    Indexes,
    /// A boolean, a number or a document. Null is refused too.
    SafeBoolOrObject,
    NumberOrString,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// How many documents a delete takes: 0 (all) or 1.
    Limit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
}

/// A field that may be left out.
pub const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false }
}
pub const fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: true }
}

/// A command or a document within it. At most 64 fields.
#[derive(PartialEq, Eq)]
pub struct Shape {
    /// How errors name it: `update`, `update.updates`.
    pub name: &'static str,
    /// The first may be the command's argument, under the name of the command; else the argument is not looked at.
    pub fields: &'static [Field],
    /// Whether the fields that any command may carry are allowed: on commands, not on documents within them.
    pub generic: bool,
}

/// The fields that have been met, by their places in the shape: those that say something, and all, nulls included.
#[derive(Default)]
struct Seen {
    present: u64,
    any: u64,
}

impl Shape {
    /// Whether the command itself has this field; generic ones do not count.
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|f| f.name == name)
    }
    /// Checks a command's body, whose first field is the command itself. `elsewhere` names a required list that came
    /// as a document sequence.
    ///
    /// # Errors
    /// Those of the head of this file.
    pub fn check_command(&self, body: Doc<'_>, elsewhere: &[(&str, &[u8])]) -> Result<()> {
        let mut seen = Seen::default();
        if let Some(first) = self.fields.first().filter(|f| f.name == self.name) {
            let argument = body.iter().next().map_or(ValueRef::Null, |e| e.value());
            self.value(first, argument, 1, &mut seen)?;
        }
        for e in body.iter().skip(1) {
            self.field(&e, &mut seen)?;
        }
        for (i, f) in self.fields.iter().enumerate() {
            if elsewhere.iter().any(|(name, _)| *name == f.name) {
                seen.present |= 1 << i;
            }
        }
        self.missing(seen.present)
    }
    /// Checks a document within a command.
    ///
    /// # Errors
    /// Those of the head of this file.
    pub fn check(&self, document: Doc<'_>) -> Result<()> {
        let mut seen = Seen::default();
        for e in document.iter() {
            self.field(&e, &mut seen)?;
        }
        self.missing(seen.present)
    }
    fn field(&self, e: &Element<'_>, seen: &mut Seen) -> Result<()> {
        let name = e.name();
        let Some(index) = self.fields.iter().position(|f| f.name == name) else {
            if self.generic && is_generic(name) {
                return Ok(());
            }
            bail!(IDL_UNKNOWN_FIELD, "BSON field '{}.{name}' is an unknown field.", self.name);
        };
        let bit = 1u64 << index;
        if seen.any & bit != 0 {
            bail!(IDL_DUPLICATE_FIELD, "BSON field '{}.{name}' is a duplicate field", self.name);
        }
        self.value(&self.fields[index], e.value(), bit, seen)
    }
    fn value(&self, field: &Field, v: ValueRef<'_>, bit: u64, seen: &mut Seen) -> Result<()> {
        seen.any |= bit;
        if matches!(v, ValueRef::Null | ValueRef::Undefined)
            && !matches!(field.kind, Kind::Hint | Kind::Update | Kind::Indexes | Kind::SafeBoolOrObject)
        {
            return Ok(());
        }
        seen.present |= bit;
        self.check_type(field.name, v, field.kind)
    }
    fn check_type(&self, name: &str, v: ValueRef<'_>, kind: Kind) -> Result<()> {
        let expected = match (kind, v) {
            (Kind::Any, _) => return Ok(()),
            (Kind::Indexes, v) if !matches!(v, ValueRef::Null | ValueRef::Undefined) => return Ok(()),
            (Kind::Bool | Kind::SafeBool, ValueRef::Boolean(_)) => return Ok(()),
            (Kind::SafeBool | Kind::Number, v) if v.is_number() => return Ok(()),
            (Kind::String, ValueRef::String(_)) => return Ok(()),
            (Kind::Object, ValueRef::Document(_)) => return Ok(()),
            (Kind::Array, ValueRef::Array(_)) => return Ok(()),
            (Kind::Objects, ValueRef::Array(items)) => return self.check_items(name, items.iter()),
            (Kind::Stages, ValueRef::Array(items)) => {
                return self.check_items(name, items.iter().filter(|e| e.value() != ValueRef::Null));
            }
            (Kind::Cursor, ValueRef::Document(cursor)) => return batch_size(self.name, cursor).map(drop),
            (Kind::One, v) if v.is_number() => return self.check_one(v),
            (Kind::Uuid, ValueRef::Binary(4, bytes)) => return check_uuid(bytes),
            (Kind::Hint, ValueRef::String(_) | ValueRef::Document(_)) => return Ok(()),
            (Kind::Hint, _) => bail!(FAILED_TO_PARSE, "Hint must be a string or an object"),
            (Kind::Update, ValueRef::Document(_) | ValueRef::Array(_)) => return Ok(()),
            (Kind::Update, _) => {
                bail!(FAILED_TO_PARSE, "Update argument must be either an object or an array")
            }
            (Kind::Limit, v) => return check_limit(v),
            (Kind::SafeBoolOrObject, ValueRef::Boolean(_) | ValueRef::Document(_)) => return Ok(()),
            (Kind::SafeBoolOrObject, v) if v.is_number() => return Ok(()),
            (Kind::NumberOrString, ValueRef::String(_)) => return Ok(()),
            (Kind::NumberOrString, v) if v.is_number() => return Ok(()),
            (Kind::OneOf(allowed), ValueRef::String(s)) => return self.check_enumeration(name, s, allowed),
            (Kind::Indexes, _) => "types '[string, array, object]'",
            (Kind::Bool, _) => "type 'bool'",
            (Kind::SafeBool, _) => "types '[bool, long, int, decimal, double]'",
            (Kind::Number | Kind::One, _) => "types '[long, int, decimal, double]'",
            (Kind::String, _) => "type 'string'",
            (Kind::Object | Kind::Cursor, _) => "type 'object'",
            (Kind::Array | Kind::Objects | Kind::Stages, _) => "type 'array'",
            (Kind::Uuid, _) => "type 'binData'",
            (Kind::SafeBoolOrObject, _) => "types '[bool, long, int, decimal, double, object]'",
            (Kind::NumberOrString, _) => "types '[string, long, int, decimal, double]'",
            (Kind::OneOf(_), _) => "type 'string'",
        };
        bail!(
            TYPE_MISMATCH,
            "BSON field '{}.{name}' is the wrong type '{}', expected {expected}",
            self.name,
            v.type_name()
        )
    }
    fn check_items<'a>(&self, name: &str, items: impl Iterator<Item = Element<'a>>) -> Result<()> {
        for item in items {
            if item.value().as_document().is_none() {
                bail!(
                    TYPE_MISMATCH,
                    "BSON field '{}.{name}.{}' is the wrong type '{}', expected type 'object'",
                    self.name,
                    item.name(),
                    item.value().type_name()
                );
            }
        }
        Ok(())
    }
    fn check_one(&self, v: ValueRef<'_>) -> Result<()> {
        if to_long(v) != Some(1) {
            bail!(5255100, "Have to pass 1 as '{}' parameter", self.name);
        }
        Ok(())
    }
    fn check_enumeration(&self, name: &str, value: &str, allowed: &[&str]) -> Result<()> {
        if !allowed.contains(&value) {
            bail!(
                BAD_VALUE,
                "Enumeration value '{value}' for field '{}.{name}' is not a valid value.",
                self.name
            );
        }
        Ok(())
    }
    fn missing(&self, seen: u64) -> Result<()> {
        let absent = self.fields.iter().enumerate().find(|(i, f)| f.required && seen & (1 << i) == 0);
        match absent {
            Some((_, f)) => bail!(
                IDL_FAILED_TO_PARSE,
                "BSON field '{}.{}' is missing but a required field",
                self.name,
                f.name
            ),
            None => Ok(()),
        }
    }
}

fn check_uuid(bytes: &[u8]) -> Result<()> {
    if bytes.len() != 16 {
        bail!(INVALID_UUID, "uuid must be a 16-byte binary field with UUID (4) subtype");
    }
    Ok(())
}

/// The size of batches that the field `cursor` of a command says, if it says one.
///
/// # Errors
/// 40415, 14 and 2 as the real server.
pub fn batch_size(command: &str, cursor: Doc<'_>) -> Result<Option<u64>> {
    let mut size = None;
    for e in cursor.iter() {
        let v = e.value();
        if e.name() != "batchSize" {
            bail!(IDL_UNKNOWN_FIELD, "BSON field '{command}.cursor.{}' is an unknown field.", e.name());
        }
        size = match to_long(v).map(|n| u64::try_from(n).map_err(|_| n)) {
            Some(Ok(n)) => Some(n),
            Some(Err(n)) => bail!(BAD_VALUE, "BSON field 'batchSize' value must be >= 0, actual value '{n}'"),
            None if matches!(v, ValueRef::Null | ValueRef::Undefined) => None,
            None => {
                return Err(document::wrong_types(
                    &format!("{command}.cursor.batchSize"),
                    v.type_name(),
                    "[long, int, decimal, double]",
                ));
            }
        };
    }
    Ok(size)
}

/// A number as the real server's `safeNumberLong` reads it: doubles are cut, decimals rounded half to even, both clamped
/// to the range; NaN is 0.
pub fn to_long(v: ValueRef<'_>) -> Option<i64> {
    match v {
        ValueRef::Decimal128(d) => Some(d.round().to_i64_saturating()),
        v => document::number::to_i64_saturating(&v.to_value()),
    }
}

fn check_limit(v: ValueRef<'_>) -> Result<()> {
    match v.as_f64() {
        Some(0.0 | 1.0) => Ok(()),
        _ => bail!(
            FAILED_TO_PARSE,
            "The limit field in delete objects must be 0 or 1. Got {}",
            v.as_f64().map_or(0, |f| f as i64)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{codes, doc};

    const SHAPE: Shape = Shape {
        name: "do",
        generic: true,
        fields: &[
            required("list", Kind::Objects),
            field("ordered", Kind::Bool),
            field("new", Kind::SafeBool),
            field("hint", Kind::Hint),
        ],
    };

    fn error(body: document::Document) -> (i32, String) {
        let e = SHAPE.check_command(body.to_doc_buf().doc(), &[]).expect_err("refused");
        (e.code, e.message)
    }

    #[test]
    fn a_body_of_the_shape_passes_with_generic_fields_and_nulls() {
        let body = doc! { "do": 1, "list": [doc! {}], "ordered": Value::Null, "new": 1.5, "comment": "c" };
        SHAPE.check_command(body.to_doc_buf().doc(), &[]).expect("passes");
        let bare = doc! { "do": 1 };
        SHAPE.check_command(bare.to_doc_buf().doc(), &[("list", &[])]).expect("the list came as a sequence");
    }

    #[test]
    fn each_deviation_has_its_error() {
        assert_eq!(error(doc! { "do": 1, "x": 1 }), (40415, "BSON field 'do.x' is an unknown field.".into()));
        assert_eq!(
            error(doc! { "do": 1, "ordered": true }),
            (40414, "BSON field 'do.list' is missing but a required field".into())
        );
        assert_eq!(
            error(doc! { "do": 1, "list": Value::Null }).0,
            40414,
            "a null counts as absent, and so as missing"
        );
        assert_eq!(
            error(doc! { "do": 1, "ordered": 1 }),
            (14, "BSON field 'do.ordered' is the wrong type 'int', expected type 'bool'".into())
        );
        assert_eq!(
            error(doc! { "do": 1, "list": [doc! {}, Value::Int32(3)] }),
            (14, "BSON field 'do.list.1' is the wrong type 'int', expected type 'object'".into())
        );
        assert_eq!(error(doc! { "do": 1, "hint": Value::Null }).0, codes::FAILED_TO_PARSE);
    }

    #[test]
    fn a_null_counts_as_one_of_two() {
        for (first, second) in [(Value::Null, Value::from(true)), (Value::from(true), Value::Null)] {
            let mut body = doc! { "do": 1, "list": [doc! {}], "new": first };
            body.push("new", second);
            assert_eq!(error(body), (40413, "BSON field 'do.new' is a duplicate field".into()));
        }
    }

    #[test]
    fn the_argument_of_a_command_may_be_described_too() {
        const DROP: Shape = Shape { name: "drop", generic: true, fields: &[required("drop", Kind::One)] };
        let code = |argument: Value| {
            let body = doc! { "drop": argument, "comment": 1 };
            DROP.check_command(body.to_doc_buf().doc(), &[]).map_err(|e| e.code)
        };
        assert_eq!(code(Value::from(1.5)), Ok(()), "a double is cut");
        assert_eq!(code(Value::from(2)), Err(5255100));
        assert_eq!(code(Value::from("1")), Err(codes::TYPE_MISMATCH));
        assert_eq!(code(Value::Null), Err(codes::IDL_FAILED_TO_PARSE), "missing");
    }

    #[test]
    fn a_list_of_stages_may_hold_nulls_and_a_cursor_says_its_batch_size() {
        const LIST: Shape = Shape {
            name: "list",
            generic: true,
            fields: &[field("pipeline", Kind::Stages), field("cursor", Kind::Cursor)],
        };
        let code = |name: &str, v: Value| {
            let mut body = doc! { "list": 1 };
            body.push(name, v);
            LIST.check_command(body.to_doc_buf().doc(), &[]).map_err(|e| e.code)
        };
        assert_eq!(code("pipeline", Value::Array(vec![Value::Null, Value::from(doc! {})])), Ok(()));
        assert_eq!(code("pipeline", Value::Array(vec![Value::from(1)])), Err(codes::TYPE_MISMATCH));
        assert_eq!(code("cursor", Value::from(doc! { "batchSize": Value::Null })), Ok(()));
        assert_eq!(code("cursor", Value::from(doc! { "batchSize": (-1) })), Err(codes::BAD_VALUE));
        assert_eq!(code("cursor", Value::from(doc! { "batchSize": "1" })), Err(codes::TYPE_MISMATCH));
        assert_eq!(code("cursor", Value::from(doc! { "size": 1 })), Err(codes::IDL_UNKNOWN_FIELD));
        let size = |v: Value| batch_size("list", doc! { "batchSize": v }.to_doc_buf().doc());
        assert_eq!(size(Value::from(7.9)), Ok(Some(7)));
        let negative = "BSON field 'batchSize' value must be >= 0, actual value '-3'";
        assert_eq!(size(Value::from(-3)).expect_err("negative").message, negative);
    }

    #[test]
    fn a_field_given_twice_is_refused() {
        let mut body = doc! { "do": 1, "new": true };
        body.push("new", false);
        assert_eq!(error(body), (40413, "BSON field 'do.new' is a duplicate field".into()));
    }

    use document::Value;
}
