//! `$regexMatch`, `$regexFind`, `$regexFindAll`: PCRE2, with positions in code points.

use super::{Eval, Expression, Node, Variables, Vars, is_nullish, parse};
use crate::matcher::interruptible::{BYTES_A_UNIT, Effort, Interruptible, Places, explained};
use crate::matcher::pattern::{PATTERN_LENGTH_MAX, compile_units};
use document::{Doc, Document, Result, Value, bail, meter};
use parking_lot::Mutex;
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};
use std::sync::{Arc, OnceLock};

/// A pattern as it was compiled.
struct Compiled {
    pattern: String,
    options: String,
    /// For what it was to be compiled, and for what it is.
    asked: Text,
    text: Text,
    regex: Regex,
    effort: Effort,
    interruptible: OnceLock<Option<Interruptible>>,
}

/// What a pattern is matched against. Before each match in text that may be UTF-8, PCRE looks whether the rest of it is valid, which
/// makes finding all matches quadratic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// Among ASCII there is nothing to look for.
    Ascii,
    /// Compiled for text that need not be valid, PCRE does not look. The crate offers that only together with classes of characters
    /// beyond ASCII, which a prefix of the pattern takes back.
    ValidUtf8,
    Utf8,
}

/// In front of a pattern it has `\d`, `\w` and such mean ASCII. Nothing may stand in front of what a pattern says of itself, `(*UCP)` and such.
const ASCII_CLASSES: &str = "(?a)";
const OF_ITSELF: &str = "(*";
/// A match of such a pattern may end within a character, behind which none begins in text that is to be valid; and PCRE interprets it, with a
/// look at the rest of the text in any case.
const SINGLE_BYTE: &str = "\\C";

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
    compile_for(name, pattern, options, Text::Utf8).map(|(regex, _)| regex)
}

/// Compiles for a text, or where that cannot be for any in UTF-8, which is returned too.
fn compile_for(name: &str, pattern: &str, options: &str, text: Text) -> Result<(Regex, Text)> {
    if pattern.contains('\0') {
        bail!(51109, "{name}: regular expression cannot contain an embedded null byte");
    }
    if options.contains('\0') {
        bail!(51110, "{name}: regular expression options cannot contain an embedded null byte");
    }
    if pattern.len() > PATTERN_LENGTH_MAX {
        bail!(51111, "Invalid Regex in {name}: regular expression is too large");
    }
    meter::spend(compile_units(pattern))?;
    let mut b = RegexBuilder::new();
    match text {
        Text::Ascii => &mut b,
        Text::ValidUtf8 => b.ucp(true),
        Text::Utf8 => b.utf(true),
    };
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
    b.jit_if_available(true);
    if text == Text::ValidUtf8 {
        if let Ok(regex) = b.build(&format!("{ASCII_CLASSES}{pattern}")) {
            return Ok((regex, text));
        }
        // A refusal names a place in the pattern as it was given.
        b.ucp(false).utf(true);
    }
    match b.build(pattern) {
        Ok(regex) if text == Text::ValidUtf8 => Ok((regex, Text::Utf8)),
        Ok(regex) => Ok((regex, text)),
        Err(e) => bail!(51111, "Invalid Regex in {name}: {e}"),
    }
}

impl Search {
    fn compiled(&self, pattern: &str, options: &str, text: Text) -> Result<Arc<Compiled>> {
        let mut last = self.last.lock();
        if let Some(c) = last.as_ref()
            && c.pattern == pattern
            && c.options == options
            && c.asked == text
        {
            return Ok(c.clone());
        }
        let asked = text;
        let (regex, text) = compile_for(self.name, pattern, options, asked)?;
        let compiled = Arc::new(Compiled {
            pattern: pattern.to_string(),
            options: options.to_string(),
            asked,
            text,
            regex,
            effort: Effort::of(pattern, options),
            interruptible: OnceLock::new(),
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
        let kind = match self.name {
            "$regexFindAll" if ascii => Text::Ascii,
            "$regexFindAll" if !pattern.starts_with(OF_ITSELF) && !pattern.contains(SINGLE_BYTE) => {
                Text::ValidUtf8
            }
            _ => Text::Utf8,
        };
        let compiled = self.compiled(pattern, flags, kind)?;
        let Some(text) = text else { return self.none() };
        match self.name {
            "$regexMatch" => Ok(Some(Value::Boolean(compiled.is_match(self.name, text)?))),
            "$regexFind" => {
                match compiled.find(self.name, text, 0, &mut compiled.regex.capture_locations())? {
                    None => self.none(),
                    Some(found) => {
                        let index = text.get(..whole(&found).0).map_or(0, |s| s.chars().count());
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

impl Compiled {
    /// The first match that begins at a place or after it. `room` is used where the match is not to be interrupted.
    fn find(
        &self,
        name: &str,
        text: &str,
        from: usize,
        room: &mut CaptureLocations,
    ) -> Result<Option<Places>> {
        self.find_or(name, text, from, || match self.regex.captures_read_at(room, text.as_bytes(), from)? {
            Some(_) => Ok(Some((0..room.len()).map(|i| room.get(i)).collect())),
            None => Ok(None),
        })
    }

    fn is_match(&self, name: &str, text: &str) -> Result<bool> {
        let found =
            self.find_or(name, text, 0, || Ok(self.regex.is_match(text.as_bytes())?.then(Places::default)));
        Ok(found?.is_some())
    }

    /// What `matched` finds at a place or after it, or what is found there by a match that can be interrupted where it may take long.
    fn find_or(
        &self,
        name: &str,
        text: &str,
        from: usize,
        matched: impl FnOnce() -> std::result::Result<Option<Places>, pcre2::Error>,
    ) -> Result<Option<Places>> {
        let bytes = text.len() - from;
        // Of a text in which all are looked for, what lies between them is counted.
        meter::spend(match from {
            0 => self.effort.units(bytes),
            _ => self.effort.units_beside_length(bytes),
        })?;
        if self.effort.is_long(bytes) {
            let compile = || Interruptible::compile(&self.pattern, &self.options, self.effort);
            if let Some(interruptible) = self.interruptible.get_or_init(compile) {
                return interruptible.find(text, from)?.or_else(|code| failed(name, &explained(code)));
            }
        }
        matched().or_else(|e| failed(name, &e))
    }
}

fn failed<T>(name: &str, why: &dyn std::fmt::Display) -> Result<T> {
    bail!(51156, "Error occurred while executing the regular expression in {name}. Result code: {why}")
}

fn whole(found: &Places) -> (usize, usize) {
    found.first().copied().flatten().unwrap_or_default()
}

/// `{match, idx, captures}` of one match; `index` counts the characters before it.
fn describe(text: &str, found: &Places, index: usize) -> Value {
    let (start, end) = whole(found);
    let captures = found.iter().skip(1).map(|place| match place {
        Some((start, end)) => Value::from(text.get(*start..*end).unwrap_or("")),
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
    let (mut out, mut room) = (Vec::new(), compiled.regex.capture_locations());
    // Characters are counted from match to match: a text of many matches is gone through once.
    let (mut from, mut at, mut index, mut bytes) = (0, 0, 0, 0);
    let mut last = None;
    // Behind the last character nothing is looked for, but in an empty text.
    while from < text.len() || (from == 0 && text.is_empty()) {
        meter::spend(if compiled.text == Text::Utf8 { (text.len() - from) / 16 } else { 0 })?;
        let Some(found) = compiled.find(name, text, from, &mut room)? else { break };
        let (start, end) = whole(&found);
        meter::spend((end - from) / BYTES_A_UNIT)?;
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

    fn searched(pattern: &str, text: &str) -> Eval {
        let spec = Value::from(document::doc! {"input": text, "regex": pattern});
        search("$regexFindAll", &spec, &Variables::new()).unwrap().eval(Doc::empty(), &mut Vars::new(0))
    }

    fn find(pattern: &str, text: &str) -> Vec<Value> {
        match searched(pattern, text).unwrap() {
            Some(Value::Array(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    /// It cannot be compiled without the check of the text that PCRE makes before each match.
    #[test]
    fn a_pattern_of_single_bytes_pays_for_every_check_of_the_text() {
        let spent = |pattern: &str, length: usize| {
            meter::within(&mut meter::Oversight::default(), || {
                let before = meter::spent();
                assert_eq!(find(pattern, &"\u{e9}aa".repeat(length)).len(), length);
                meter::spent() - before
            })
        };
        let growth = |pattern: &str| spent(pattern, 4_000) as f64 / spent(pattern, 1_000) as f64;
        assert!(growth("aa") < 6.0, "{}", growth("aa"));
        assert!(growth("a\\C") > 10.0, "{}", growth("a\\C"));
    }

    #[test]
    fn what_goes_on_within_a_character_fails() {
        for pattern in ["a\\C", "(?:a?\\C)", "(?:a|x+)+\\C"] {
            let failed = searched(pattern, &"a\u{e9}".repeat(30)).unwrap_err();
            assert_eq!(failed.code, 51156, "{pattern} {failed}");
        }
    }

    #[test]
    fn all_matches_of_a_long_text_are_found_in_one_pass() {
        let began = Instant::now();
        for letter in ["a", "\u{e4}"] {
            assert_eq!(find(letter, &letter.repeat(200_000)).len(), 200_000);
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn classes_of_characters_are_those_of_ascii_in_any_text() {
        let found = |pattern: &str, text: &str| -> Vec<String> {
            let text = find(pattern, text);
            text.iter().map(|v| v.as_document().unwrap().get_str("match").unwrap().to_string()).collect()
        };
        assert_eq!(found("\\w+", "a\u{e9} b"), ["a", "b"]);
        assert_eq!(found("[[:alpha:]]+", "a\u{e9} b"), ["a", "b"]);
        assert_eq!(found("\\d", "1 \u{663}"), ["1"]);
        assert_eq!(found("a\\b", "a\u{e9}"), ["a"]);
        assert_eq!(found("x\\s", "x\u{a0}x "), ["x "]);
        assert_eq!(found("(*UCP)\\w+", "a\u{e9} b"), ["a\u{e9}", "b"]);
        assert_eq!(found("(?i)\u{c9}", "\u{e9}"), ["\u{e9}"]);
        assert_eq!(found("x|\\w", "\u{e9}ax"), ["a", "x"]);
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
