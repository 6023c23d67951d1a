//! `$regexMatch`, `$regexFind`, `$regexFindAll`: PCRE2, with positions in code points.

use super::{Eval, Expression, Node, Variables, Vars, is_nullish, parse};
use crate::matcher::pattern::{PATTERN_LENGTH_MAX, backtracks, match_units};
use document::{Doc, Document, Result, Value, bail, meter};
use parking_lot::Mutex;
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};
use std::sync::Arc;

/// A pattern as it was compiled.
struct Compiled {
    pattern: String,
    options: String,
    utf: bool,
    regex: Regex,
    backtracks: bool,
}

/// The last pattern compiled by an operator, which nearly always is the next one too.
type Last = Mutex<Option<Arc<Compiled>>>;

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
    compile_as(name, pattern, options, true)
}

/// Without `utf` the pattern may only be matched against ASCII text. PCRE looks whether the rest of the text is valid
/// UTF-8 before each match, which makes finding all matches quadratic; among ASCII there is nothing to look for.
fn compile_as(name: &str, pattern: &str, options: &str, utf: bool) -> Result<Regex> {
    if pattern.contains('\0') {
        bail!(51109, "{name}: regular expression cannot contain an embedded null byte");
    }
    if options.contains('\0') {
        bail!(51110, "{name}: regular expression options cannot contain an embedded null byte");
    }
    if pattern.len() > PATTERN_LENGTH_MAX {
        bail!(51111, "Invalid Regex in {name}: regular expression is too large");
    }
    let mut b = RegexBuilder::new();
    b.utf(utf);
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
    fn compiled(&self, pattern: &str, options: &str, utf: bool) -> Result<Arc<Compiled>> {
        let mut last = self.last.lock();
        if let Some(c) = last.as_ref()
            && c.pattern == pattern
            && c.options == options
            && c.utf == utf
        {
            return Ok(c.clone());
        }
        let regex = compile_as(self.name, pattern, options, utf)?;
        let compiled = Arc::new(Compiled {
            pattern: pattern.to_string(),
            options: options.to_string(),
            utf,
            regex,
            backtracks: backtracks(pattern),
        });
        *last = Some(compiled.clone());
        Ok(compiled)
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
        // What is wrong with the pattern is said before what is wrong with the text.
        let pattern = match &regex {
            Some(Value::Regex(r)) if !r.options.is_empty() && matches!(options, Some(Value::String(_))) => {
                bail!(
                    51107,
                    "{}: found regex option(s) specified in both 'regex' and 'option' fields",
                    self.name
                )
            }
            Some(Value::String(s)) => Some((s, "")),
            Some(Value::Regex(r)) => Some((&r.pattern, r.options.as_str())),
            v if is_nullish(v) => None,
            _ => bail!(51105, "{} needs 'regex' to be of type string or regex", self.name),
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
        let Some((pattern, own)) = pattern else { return self.none() };
        let flags = given.unwrap_or(own);
        let ascii = pattern.is_ascii() && text.is_some_and(|t| t.is_ascii());
        let compiled = self.compiled(pattern, flags, self.name != "$regexFindAll" || !ascii)?;
        let Some(text) = text else { return self.none() };
        meter::spend(match_units(compiled.backtracks, text.len()))?;
        let regex = &compiled.regex;
        match self.name {
            "$regexMatch" => Ok(Some(Value::Boolean(matched(self.name, regex.is_match(text.as_bytes()))?))),
            "$regexFind" => {
                let mut found = regex.capture_locations();
                match matched(self.name, regex.captures_read(&mut found, text.as_bytes()))?.map(|m| m.start())
                {
                    None => self.none(),
                    Some(start) => {
                        let index = text.get(..start).map_or(0, |s| s.chars().count());
                        Ok(Some(describe(text, &found, index)))
                    }
                }
            }
            _ => find_all(self.name, &compiled, text),
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
fn describe(text: &str, found: &CaptureLocations, index: usize) -> Value {
    let (start, end) = found.get(0).unwrap_or((0, 0));
    let captures = (1..found.len()).map(|i| match found.get(i) {
        Some((start, end)) => Value::from(text.get(start..end).unwrap_or("")),
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

fn find_all(name: &str, compiled: &Compiled, text: &str) -> Eval {
    let mut found = compiled.regex.capture_locations();
    let mut out = Vec::new();
    // Characters are counted from match to match: a text of many matches is gone through once.
    let (mut from, mut at, mut index, mut bytes) = (0, 0, 0, 0);
    let mut last = None;
    // Behind the last character nothing is looked for, but in an empty text.
    while from < text.len() || (from == 0 && text.is_empty()) {
        // With UTF, PCRE goes through all the rest to see whether it is valid.
        meter::spend(if compiled.utf { 2 + (text.len() - from) / 16 } else { 2 })?;
        let next = compiled.regex.captures_read_at(&mut found, text.as_bytes(), from);
        let Some(m) = matched(name, next)? else { break };
        let (start, end) = (m.start(), m.end());
        meter::spend((end - from) / 32)?;
        from = end;
        if start == end {
            from += text.get(end..).and_then(|t| t.chars().next()).map_or(1, char::len_utf8);
            // An empty match right behind another one is none.
            if last == Some(end) {
                continue;
            }
        }
        last = Some(end);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn find(pattern: &str, text: &str) -> Vec<Value> {
        let spec = Value::from(document::doc! {"input": text, "regex": pattern});
        let e = search("$regexFindAll", &spec, &Variables::new()).unwrap();
        match e.eval(Doc::empty(), &mut Vars::new(0)).unwrap() {
            Some(Value::Array(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_matches_of_a_long_text_are_found_in_one_pass() {
        let began = Instant::now();
        assert_eq!(find("a", &"a".repeat(200_000)).len(), 200_000);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn ascii_and_other_text_give_the_same_places() {
        let places = |pattern: &str, text: &str| -> Vec<(String, i64)> {
            let one = |v: &Value| {
                let d = v.as_document().unwrap();
                (d.get_str("match").unwrap().to_string(), d.get("idx").and_then(Value::as_i64).unwrap())
            };
            find(pattern, text).iter().map(one).collect()
        };
        let expected = |list: &[(&str, i64)]| -> Vec<(String, i64)> {
            list.iter().map(|(s, i)| (s.to_string(), *i)).collect()
        };
        assert_eq!(places("b*", "abba"), expected(&[("", 0), ("bb", 1)]));
        assert_eq!(places("b*", "\u{e9}bb\u{e9}"), expected(&[("", 0), ("bb", 1)]));
        assert_eq!(places("(?i)K\\w", "ka \u{e9} kb"), expected(&[("ka", 0), ("kb", 5)]));
    }
}
