//! A request as handlers see it, and the helpers that read its fields with the real server's errors.

use super::Command;
use document::{Doc, Element, Error, Result, ValueRef, bail, err};

/// A kind-1 section: its name, and documents back to back. Each was validated on entry.
pub type Sequence<'a> = (&'a str, &'a [u8]);

/// One request: its row, and the bytes it came in. What the lower rooms need of it is `node`, and its fields and
/// methods (`db`, `body`, `namespace()`, `documents()`) can be used through this as well.
pub struct Request<'a> {
    pub command: &'static Command,
    /// The name as the client wrote it (one of the row's name and aliases).
    pub name: &'a str,
    pub node: node::request::Request<'a>,
    /// The client will read further replies without asking (flag bit 16).
    pub exhaust_allowed: bool,
    /// The generic `comment`.
    pub comment: Option<ValueRef<'a>>,
}

impl<'a> std::ops::Deref for Request<'a> {
    type Target = node::request::Request<'a>;
    fn deref(&self) -> &Self::Target {
        &self.node
    }
}

impl<'a> Request<'a> {
    /// The value of the first field, which names the target: a collection, a namespace, or just 1.
    pub fn target(&self) -> ValueRef<'a> {
        self.body.iter().next().map_or(ValueRef::Null, |e| e.value())
    }
    /// A field that is present and not null.
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        self.body.get_present(name)
    }
    /// The error for a required field that is not there (40414).
    pub fn missing(&self, name: &str) -> Error {
        err!(IDL_FAILED_TO_PARSE, "BSON field '{}.{name}' is missing but a required field", self.command.name)
    }
    /// The error for a field of the wrong type (14). Several types are given as "[a, b]"; the real server then says
    /// "types" and closes the list before the quote.
    pub fn wrong_type(&self, name: &str, value: ValueRef<'_>, expected: &str) -> Error {
        let plural = if expected.starts_with('[') { "s" } else { "" };
        err!(
            TYPE_MISMATCH,
            "BSON field '{}.{name}' is the wrong type '{}', expected type{plural} '{expected}'",
            self.command.name,
            value.type_name()
        )
    }
    pub fn string(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::String(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong_type(name, other, "string")),
        }
    }
    pub fn document(&self, name: &str) -> Result<Option<Doc<'a>>> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::Document(d)) => Ok(Some(d)),
            Some(other) => Err(self.wrong_type(name, other, "object")),
        }
    }
    /// A boolean, as strictly as the real server's `bool` (numbers are accepted where the real one says safeBool).
    pub fn bool(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::Boolean(b)) => Ok(Some(b)),
            Some(v) if v.is_number() => Ok(Some(v.truthy())),
            Some(other) => Err(self.wrong_type(name, other, "[bool, long, int, decimal, double]")),
        }
    }
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name) {
            None => Ok(None),
            Some(v) => match v.as_i64() {
                Some(i) => Ok(Some(i)),
                // Doubles are cut and decimals rounded, as the real server's safeInt64 does.
                None => match node::shape::to_long(v) {
                    Some(i) => Ok(Some(i)),
                    None => Err(self.wrong_type(name, v, "[long, int, decimal, double]")),
                },
            },
        }
    }
    /// Refuses fields that are neither in `known` nor generic arguments (40415). The first field is the command.
    pub fn strict(&self, known: &[&str]) -> Result<()> {
        Strict { command: self.command.name, known }.check(self.body.iter().skip(1))
    }
}

/// The known fields of a strict (IDL) command or subdocument.
pub struct Strict<'k> {
    pub command: &'k str,
    pub known: &'k [&'k str],
}

impl Strict<'_> {
    pub fn check<'a>(&self, fields: impl Iterator<Item = Element<'a>>) -> Result<()> {
        for element in fields {
            let name = element.name();
            if !self.known.contains(&name) && !node::generic::is_generic(name) {
                bail!(IDL_UNKNOWN_FIELD, "BSON field '{}.{name}' is an unknown field.", self.command);
            }
        }
        Ok(())
    }
}
