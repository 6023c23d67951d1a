//! The generic arguments: fields that every command takes, read once before the handler.

use document::raw::type_name;
use document::{Doc, Element, Result, ValueRef};
use protocol::selection::ReadPreference;

/// The generic arguments that only the dispatcher reads; the others are in [`node::Operation`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Generic<'a> {
    pub db: Option<&'a str>,
    pub read_preference: Option<Doc<'a>>,
    pub comment: Option<ValueRef<'a>>,
    pub api_version: Option<&'a str>,
    pub api_strict: Option<bool>,
    pub api_deprecation_errors: Option<bool>,
    /// `$replData: 1`: the reply is to say what this member knows of its set.
    pub asks_set_data: bool,
}

impl<'a> Generic<'a> {
    /// Reads the body once. Null means absent, as for every optional field.
    pub fn parse(body: Doc<'a>) -> Result<Generic<'a>> {
        let mut generic = Generic::default();
        for element in body.iter() {
            // Most fields of a command are not generic: one look at the first byte decides.
            if matches!(element.name_bytes().first(), Some(b'$' | b'a' | b'c')) && element.tag() != 0x0A {
                generic.read(element)?;
            }
        }
        Ok(generic)
    }

    fn read(&mut self, e: Element<'a>) -> Result<()> {
        match e.name_bytes() {
            b"$db" => self.db = Some(string(&e)?),
            b"$readPreference" => self.read_preference = Some(read_preference(&e)?),
            b"comment" => self.comment = Some(e.value()),
            b"apiVersion" => self.api_version = Some(string(&e)?),
            b"apiStrict" => self.api_strict = Some(bool(&e)?),
            b"$replData" => self.asks_set_data = e.value().is_number(),
            b"apiDeprecationErrors" => self.api_deprecation_errors = Some(bool(&e)?),
            _ => {}
        }
        Ok(())
    }
}

/// # Errors
/// Those of [`ReadPreference::parse`].
fn read_preference<'a>(e: &Element<'a>) -> Result<Doc<'a>> {
    let given = document(e)?;
    ReadPreference::parse(given)?;
    Ok(given)
}

fn wrong(e: &Element<'_>, expected: &str) -> document::Error {
    document::err!(
        TYPE_MISMATCH,
        "BSON field '{}' is the wrong type '{}', expected type '{expected}'",
        e.name(),
        type_name(e.tag())
    )
}
fn string<'a>(e: &Element<'a>) -> Result<&'a str> {
    e.value().as_str().ok_or_else(|| wrong(e, "string"))
}
fn document<'a>(e: &Element<'a>) -> Result<Doc<'a>> {
    e.value().as_document().ok_or_else(|| wrong(e, "object"))
}
fn bool(e: &Element<'_>) -> Result<bool> {
    e.value().as_bool().ok_or_else(|| wrong(e, "bool"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn null_means_absent_and_a_wrong_type_is_refused() {
        let body = doc! {"find": "c", "apiVersion": document::Value::Null, "$db": "d"}.to_doc_buf();
        let generic = Generic::parse(body.doc()).unwrap();
        assert_eq!((generic.api_version, generic.db), (None, Some("d")));
        let body = doc! {"find": "c", "$db": 1}.to_doc_buf();
        assert_eq!(Generic::parse(body.doc()).unwrap_err().code, 14);
    }
}
