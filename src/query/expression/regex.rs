//! `$regexMatch`, `$regexFind`, `$regexFindAll`: PCRE2, with positions in code points.

use super::{Eval, Expression, Node, Variables, Vars, is_nullish, parse};
use document::{Doc, Document, Result, Value, bail};
use parking_lot::Mutex;
use pcre2::bytes::{Captures, Regex, RegexBuilder};
use std::sync::Arc;

/// The last pattern compiled by an operator, which nearly always is the next one too.
type Last = Mutex<Option<(String, String, Arc<Regex>)>>;

struct Search {
    name: &'static str,
    input: Expression,
    regex: Expression,
    options: Option<Expression>,
    last: Last,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(self.name).field("input", &self.input).field("regex", &self.regex).finish()
    }
}

/// Compiles with the options `i`, `m`, `s`, `x` (and `u`, which changes nothing).
pub fn compile(name: &str, pattern: &str, options: &str) -> Result<Regex> {
    if pattern.contains('\0') {
        bail!(51109, "{name}: regular expression cannot contain an embedded null byte");
    }
    if options.contains('\0') {
        bail!(51110, "{name}: regular expression options cannot contain an embedded null byte");
    }
    let mut b = RegexBuilder::new();
    b.utf(true);
    for option in options.chars() {
        match option {
            'i' => b.caseless(true),
            'm' => b.multi_line(true),
            's' => b.dotall(true),
            'x' => b.extended(true),
            'u' => &mut b,
            other => bail!(51108, "{name} invalid flag in regex options: {other}"),
        };
    }
    match b.jit_if_available(true).build(pattern) {
        Ok(r) => Ok(r),
        Err(e) => bail!(51111, "Invalid Regex in {name}: {e}"),
    }
}

impl Search {
    fn compiled(&self, pattern: &str, options: &str) -> Result<Arc<Regex>> {
        let mut last = self.last.lock();
        if let Some((p, o, r)) = last.as_ref()
            && p == pattern
            && o == options
        {
            return Ok(r.clone());
        }
        let regex = Arc::new(compile(self.name, pattern, options)?);
        *last = Some((pattern.to_string(), options.to_string(), regex.clone()));
        Ok(regex)
    }
    fn none(&self) -> Eval {
        Ok(Some(match self.name {
            "$regexMatch" => Value::Boolean(false),
            "$regexFind" => Value::Null,
            _ => Value::Array(Vec::new()),
        }))
    }
}

impl Node for Search {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let input = self.input.eval(root, vars)?;
        let regex = self.regex.eval(root, vars)?;
        let options = match &self.options {
            None => None,
            Some(e) => e.eval(root, vars)?,
        };
        let text = match &input {
            v if is_nullish(v) => None,
            Some(Value::String(s)) => Some(s),
            _ => bail!(51104, "{} needs 'input' to be of type string", self.name),
        };
        let given = match &options {
            v if is_nullish(v) => None,
            Some(Value::String(s)) => Some(s.as_str()),
            _ => bail!(51106, "{} needs 'options' to be of type string", self.name),
        };
        let (pattern, flags) = match &regex {
            v if is_nullish(v) => return self.none(),
            Some(Value::String(s)) => (s, given.unwrap_or("")),
            Some(Value::Regex(r)) => match given {
                Some(_) if !r.options.is_empty() => bail!(
                    51107,
                    "{}: found regex option(s) specified in both 'regex' and 'option' fields",
                    self.name
                ),
                _ => (&r.pattern, given.unwrap_or(&r.options)),
            },
            _ => bail!(51105, "{} needs 'regex' to be of type string or regex", self.name),
        };
        let regex = self.compiled(pattern, flags)?;
        let Some(text) = text else { return self.none() };
        match self.name {
            "$regexMatch" => Ok(Some(Value::Boolean(matched(self.name, regex.is_match(text.as_bytes()))?))),
            "$regexFind" => match matched(self.name, regex.captures(text.as_bytes()))? {
                None => self.none(),
                Some(found) => {
                    let start = found.get(0).map_or(0, |m| m.start());
                    let index = text.get(..start).map_or(0, |s| s.chars().count());
                    Ok(Some(describe(text, &found, index)))
                }
            },
            _ => find_all(self.name, &regex, text),
        }
    }
    fn children(&self) -> Vec<&Expression> {
        [&self.input, &self.regex].into_iter().chain(&self.options).collect()
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

fn matched<T>(name: &str, r: std::result::Result<T, pcre2::Error>) -> Result<T> {
    r.or_else(|e| {
        bail!(51156, "Error occurred while executing the regular expression in {name}. Result code: {e}")
    })
}

/// `{match, idx, captures}` of one match; `index` counts the characters before it.
fn describe(text: &str, found: &Captures<'_>, index: usize) -> Value {
    let (start, end) = found.get(0).map_or((0, 0), |m| (m.start(), m.end()));
    let captures = (1..found.len()).map(|i| match found.get(i) {
        Some(m) => Value::from(text.get(m.start()..m.end()).unwrap_or("")),
        None => Value::Null,
    });
    let mut out = Document::new();
    out.push("match", text.get(start..end).unwrap_or(""));
    out.push("idx", index as i32);
    out.push("captures", Value::Array(captures.collect()));
    Value::Document(out)
}

/// What the matches of one string may take in memory, in bytes, and what each takes beside its text.
const MATCHES_BYTES_MAX: usize = 64 * 1024 * 1024;
const MATCH_BYTES: usize = 256;

fn find_all(name: &str, regex: &Regex, text: &str) -> Eval {
    let mut out = Vec::new();
    // Characters are counted from match to match: a text of many matches is gone through once.
    let (mut at, mut index, mut bytes) = (0, 0, 0);
    for found in regex.captures_iter(text.as_bytes()) {
        let found = matched(name, found)?;
        let (start, end) = found.get(0).map_or((at, at), |m| (m.start(), m.end()));
        index += text.get(at..start).map_or(0, |s| s.chars().count());
        at = start;
        bytes += MATCH_BYTES + (end - start) * found.len();
        if bytes > MATCHES_BYTES_MAX {
            bail!(51151, "{name}: the size of buffer to store output exceeded the 64MB limit");
        }
        out.push(describe(text, &found, index));
    }
    Ok(Some(Value::Array(out)))
}

pub fn search(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(51103, "{name} expects an object of named arguments but found: {}", v.type_name());
    };
    if let Some(bad) = d.keys().find(|k| !["input", "regex", "options"].contains(k)) {
        bail!(31024, "{name} found an unknown argument: {bad}");
    }
    let Some(input) = d.get("input") else { bail!(31022, "{name} requires 'input' parameter") };
    let Some(regex) = d.get("regex") else { bail!(31023, "{name} requires 'regex' parameter") };
    Ok(Expression::Special(Arc::new(Search {
        name,
        input: parse::expression(input, vars)?,
        regex: parse::expression(regex, vars)?,
        options: d.get("options").map(|v| parse::expression(v, vars)).transpose()?,
        last: Mutex::new(None),
    })))
}
