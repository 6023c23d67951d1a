//! Reading the fields of a command as strictly as the real server, with its errors.

use crate::generic::is_generic;
use document::{Doc, Element, Error, Result, ValueRef, bail, err};

/// The fields of one command; errors name it.
#[derive(Clone, Copy)]
pub struct Fields {
    pub command: &'static str,
}

impl Fields {
    /// The error for a field that is not known.
    ///
    /// # Errors
    /// 40415, unless any command may carry the field.
    pub fn unknown(&self, name: &str) -> Result<()> {
        if !is_generic(name) {
            bail!(IDL_UNKNOWN_FIELD, "BSON field '{}.{name}' is an unknown field.", self.command);
        }
        Ok(())
    }
    pub fn wrong_type(&self, e: &Element<'_>, expected: &str) -> Error {
        let plural = if expected.starts_with('[') { "s" } else { "" };
        err!(
            TYPE_MISMATCH,
            "BSON field '{}.{}' is the wrong type '{}', expected type{plural} '{expected}'",
            self.command,
            e.name(),
            e.value().type_name()
        )
    }
    pub fn document<'a>(&self, e: &Element<'a>) -> Result<Doc<'a>> {
        match e.value() {
            ValueRef::Document(d) => Ok(d),
            _ => Err(self.wrong_type(e, "object")),
        }
    }
    pub fn string<'a>(&self, e: &Element<'a>) -> Result<&'a str> {
        match e.value() {
            ValueRef::String(s) => Ok(s),
            _ => Err(self.wrong_type(e, "string")),
        }
    }
    pub fn bool(&self, e: &Element<'_>) -> Result<bool> {
        match e.value() {
            ValueRef::Boolean(b) => Ok(b),
            v if v.is_number() => Ok(v.truthy()),
            _ => Err(self.wrong_type(e, "[bool, long, int, decimal, double]")),
        }
    }
    pub fn integer(&self, e: &Element<'_>) -> Result<i64> {
        let v = e.value();
        match v.as_i64() {
            Some(n) => Ok(n),
            // Doubles are cut and decimals rounded, as the real server's safeInt64 does.
            None => {
                crate::shape::to_long(v).ok_or_else(|| self.wrong_type(e, "[long, int, decimal, double]"))
            }
        }
    }
    /// A number that may not be negative.
    pub fn count(&self, e: &Element<'_>) -> Result<u64> {
        let n = self.integer(e)?;
        u64::try_from(n)
            .map_err(|_| err!(BAD_VALUE, "BSON field '{}' value must be >= 0, actual value '{n}'", e.name()))
    }
}
