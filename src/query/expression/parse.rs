//! From a BSON value to an [`Expression`].

use super::Expression;
use super::field_path::FieldPath;
use super::table::{self, Function, Kind, Operator};
use super::variables::{Slot, Variables};
use document::{Document, Error, Result, Value, bail, meter};

/// A string of an expression is shorter than this.
pub const STRING_BYTES_LIMIT: usize = 16 * 1024 * 1024;

/// Parses any value: strings starting with `$` are paths and variables, one-field objects starting with `$` are
/// operators, other objects and arrays are evaluated member by member, the rest is constant.
pub fn expression(v: &Value, vars: &Variables) -> Result<Expression> {
    meter::spend(2)?;
    match v {
        Value::String(s) if s.len() >= STRING_BYTES_LIMIT => {
            bail!(16493, "A string of {} bytes is too long for an expression", s.len())
        }
        Value::String(s) if s.starts_with('$') => path_or_variable(s, vars),
        Value::Document(d) => vars.constants().around(|| object(d, vars)),
        Value::Array(items) => vars.constants().around(|| {
            let items = items.iter().map(|i| expression(i, vars)).collect::<Result<Vec<_>>>()?;
            Ok(fold_array(items))
        }),
        other => Ok(Expression::Constant(other.clone())),
    }
}

fn fold_array(items: Vec<Expression>) -> Expression {
    if items.iter().all(|i| matches!(i, Expression::Constant(_))) {
        return Expression::Constant(Value::Array(
            items
                .into_iter()
                .map(|i| if let Expression::Constant(v) = i { v } else { Value::Null })
                .collect(),
        ));
    }
    Expression::Array(items)
}

fn fold_object(fields: Vec<(String, Expression)>) -> Expression {
    if fields.iter().any(|(_, e)| e.as_constant().is_none()) {
        return Expression::Object(fields);
    }
    let constant = |(name, e): (String, Expression)| match e {
        Expression::Constant(v) => (name, v),
        _ => (name, Value::Null),
    };
    Expression::Constant(Value::Document(fields.into_iter().map(constant).collect()))
}

fn path_or_variable(s: &str, vars: &Variables) -> Result<Expression> {
    let path = &s[1..];
    let Some(variable) = path.strip_prefix('$') else {
        if path.is_empty() {
            bail!(16872, "'$' by itself is not a valid FieldPath");
        }
        if path.contains('\0') {
            bail!(16411, "FieldPath field names may not contain '\\0'.");
        }
        return Ok(Expression::Field(FieldPath::parse(path)?));
    };
    let (name, rest) = match variable.split_once('.') {
        None => (variable, None),
        Some((name, rest)) => (name, Some(rest)),
    };
    check_variable_name(name, false)?;
    if variable.ends_with('.') {
        bail!(40353, "FieldPath must not end with a '.'.");
    }
    let path = rest.map_or(Ok(FieldPath::empty()), FieldPath::parse)?;
    match name {
        "ROOT" => Ok(Expression::Root(path)),
        "CURRENT" if path.is_empty() => {
            Ok(Expression::Special(std::sync::Arc::new(super::miscellaneous::Current)))
        }
        "CURRENT" => Ok(Expression::Field(path)),
        _ => {
            let slot: Slot = vars.find(name)?;
            Ok(Expression::Variable(slot, path))
        }
    }
}

/// Variable names start with a letter (or a byte above 127) and go on with letters, digits and `_`. Names bound by a
/// user start with a lower-case letter; only `CURRENT` may be rebound among the built-in ones.
pub fn check_variable_name(name: &str, binding: bool) -> Result<()> {
    let Some(first) = name.bytes().next() else {
        bail!(FAILED_TO_PARSE, "empty variable names are not allowed");
    };
    if binding && name == "CURRENT" {
        return Ok(());
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 128;
    let starts =
        if binding { first.is_ascii_lowercase() } else { first.is_ascii_alphabetic() } || first >= 128;
    let owner = if binding { "user variable name" } else { "variable name" };
    if !starts {
        bail!(FAILED_TO_PARSE, "'{name}' starts with an invalid character for a {owner}");
    }
    if let Some(bad) = name.bytes().find(|b| !fits(*b)) {
        bail!(
            FAILED_TO_PARSE,
            "'{name}' contains an invalid character for a variable name: '{}'",
            bad as char
        );
    }
    Ok(())
}

/// An object: an operator when its first name starts with `$`.
pub fn object(d: &Document, vars: &Variables) -> Result<Expression> {
    if let Some((name, argument)) = d.first()
        && name.starts_with('$')
    {
        if d.len() != 1 {
            bail!(
                15983,
                "an object representing an expression must have exactly one field: {}",
                document::shell::document(d)
            );
        }
        return operator(name, argument, vars);
    }
    let mut fields = Vec::with_capacity(d.len());
    for (name, v) in d.iter() {
        if name.starts_with('$') {
            bail!(
                16410,
                "FieldPath field names may not start with '$'. Consider using $getField or $setField."
            );
        }
        if name.contains('.') {
            bail!(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.");
        }
        if name.is_empty() {
            bail!(15998, "FieldPath field names may not be empty strings.");
        }
        fields.push((name.to_string(), expression(v, vars)?));
    }
    Ok(fold_object(fields))
}

/// `{<name>: <argument>}` with a name that starts with `$`.
pub fn operator(name: &str, argument: &Value, vars: &Variables) -> Result<Expression> {
    let Some(row) = table::find(name) else {
        bail!(INVALID_PIPELINE_OPERATOR, "Unrecognized expression '{name}'");
    };
    match row.kind {
        Kind::Function { min, max, call } => {
            let args = arguments(argument, vars)?;
            check_arity(row, args.len(), min, max)?;
            Ok(Expression::Call(row, Function::Plain(call), args))
        }
        Kind::Comparing { min, max, call } => {
            let args = arguments(argument, vars)?;
            check_arity(row, args.len(), min, max)?;
            Ok(Expression::Call(row, Function::Comparing(call, vars.collation().clone()), args))
        }
        Kind::Single(call) => {
            Ok(Expression::Call(row, Function::Plain(call), vec![expression(argument, vars)?]))
        }
        Kind::Special(parse) => parse(row.name, argument, vars),
        Kind::NotImplemented => bail!(NOT_IMPLEMENTED, "{name} is known but not implemented"),
    }
}

/// An operator's argument list: an array's items, or one argument that is not an array.
pub fn arguments(argument: &Value, vars: &Variables) -> Result<Vec<Expression>> {
    match argument {
        Value::Array(items) => items.iter().map(|i| expression(i, vars)).collect(),
        one => Ok(vec![expression(one, vars)?]),
    }
}

fn check_arity(row: &Operator, given: usize, min: usize, max: usize) -> Result<()> {
    arity(row.name, given, min, max)
}

/// Checks the number of arguments, with the server's two wordings.
pub fn arity(name: &str, given: usize, min: usize, max: usize) -> Result<()> {
    if (min..=max).contains(&given) {
        return Ok(());
    }
    if min == max {
        bail!(16020, "Expression {name} takes exactly {min} arguments. {given} were passed in.");
    }
    if max == usize::MAX {
        bail!(28667, "Expression {name} takes at least {min} arguments, but {given} were passed in.");
    }
    bail!(
        28667,
        "Expression {name} takes at least {min} arguments, and at most {max}, but {given} were passed in."
    );
}

/// Named arguments `{a: .., b: ..}` of an operator, in the wording that most operators share.
pub struct Named<'a> {
    pub name: &'static str,
    pub fields: &'a Document,
}

impl<'a> Named<'a> {
    /// `not_object` and `unknown` are the codes of a non-object argument and of an unknown member.
    pub fn new(
        name: &'static str,
        v: &'a Value,
        known: &[&str],
        not_object: i32,
        unknown: i32,
    ) -> Result<Named<'a>> {
        let Value::Document(fields) = v else {
            return Err(Error::new(not_object, format!("{name} only supports an object as its argument")));
        };
        if let Some(bad) = fields.keys().find(|k| !known.contains(k)) {
            return Err(Error::new(unknown, format!("Unrecognized argument to {name}: {bad}")));
        }
        Ok(Named { name, fields })
    }
    pub fn optional(&self, field: &str, vars: &Variables) -> Result<Option<Expression>> {
        self.fields.get(field).map(|v| expression(v, vars)).transpose()
    }
    pub fn required(&self, field: &str, code: i32, vars: &Variables) -> Result<Expression> {
        match self.optional(field, vars)? {
            Some(e) => Ok(e),
            None => Err(Error::new(code, format!("Missing '{field}' parameter to {}", self.name))),
        }
    }
}

pub use document::shell::value as show;

/// Bytes in upper-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    document::encoding::hex(bytes).to_uppercase()
}
