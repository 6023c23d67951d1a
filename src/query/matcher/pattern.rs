//! Regular expressions of the query language: PCRE2 with the options i, m, s, x (and u, which is always on).

use super::interruptible::{Effort, Interruptible};
use document::{Element, Result, bail, err, meter};
use pcre2::bytes::{Regex, RegexBuilder};
use std::fmt;
use std::sync::OnceLock;

/// A compiled pattern. It also equals a stored regular expression of the same pattern and options.
pub struct Pattern {
    pub source: String,
    /// Sorted, as BSON wants them.
    pub options: String,
    regex: Regex,
    effort: Effort,
    interruptible: OnceLock<Option<Interruptible>>,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.source, self.options)
    }
}

/// The longest pattern the real server accepts.
pub(crate) const PATTERN_LENGTH_MAX: usize = 16384;

/// Units of work of compiling a pattern.
pub(crate) fn compile_units(pattern: &str) -> usize {
    COMPILE_UNITS + COMPILE_UNITS_A_BYTE * pattern.len()
}

const COMPILE_UNITS: usize = 2000;
const COMPILE_UNITS_A_BYTE: usize = 20;

impl Pattern {
    pub fn compile(source: &str, options: &str) -> Result<Pattern> {
        if source.len() > PATTERN_LENGTH_MAX {
            bail!(
                51091,
                "Regular expression is invalid: pattern string is longer than the limit set by the application"
            );
        }
        if source.contains('\0') {
            bail!(BAD_VALUE, "Regular expression cannot contain an embedded null byte");
        }
        if options.contains('\0') {
            bail!(51108, "Regular expression options string cannot contain an embedded null byte");
        }
        meter::spend(compile_units(source))?;
        let mut builder = RegexBuilder::new();
        builder.utf(true).ucp(false).jit_if_available(true);
        for flag in options.chars() {
            match flag {
                'i' => builder.caseless(true),
                'm' => builder.multi_line(true),
                's' => builder.dotall(true),
                'x' => builder.extended(true),
                'u' => &mut builder,
                other => bail!(51108, "invalid flag in regex options: {other}"),
            };
        }
        let regex = builder.build(source).map_err(|e| {
            // The crate puts its name and the place before what the engine says.
            let shown = e.to_string();
            let said = shown.rsplit_once(": ").map_or(shown.as_str(), |(_, said)| said);
            err!(51091, "Regular expression is invalid: {said}")
        })?;
        let mut sorted: Vec<char> = options.chars().filter(|c| *c != 'u').collect();
        sorted.sort_unstable();
        sorted.dedup();
        Ok(Pattern {
            source: source.to_string(),
            options: sorted.into_iter().collect(),
            regex,
            effort: Effort::of(source, options),
            interruptible: OnceLock::new(),
        })
    }

    /// Counts the work of matching so many bytes, before it is done.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub fn spend(&self, bytes: usize) -> Result<()> {
        meter::spend(self.effort.units(bytes))
    }

    /// Whether it matches in a text. What PCRE gives up does not match, as on the real server.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub fn is_match(&self, text: &[u8]) -> Result<bool> {
        let plainly = || Ok(self.regex.is_match(text).unwrap_or(false));
        if !self.effort.is_long(text.len()) {
            return plainly();
        }
        let Ok(valid) = std::str::from_utf8(text) else { return Ok(false) };
        let compile = || Interruptible::compile(&self.source, &self.options, self.effort);
        match self.interruptible.get_or_init(compile) {
            Some(interruptible) => Ok(matches!(interruptible.find(valid, 0)?, Ok(Some(_)))),
            None => plainly(),
        }
    }

    /// Strings and symbols that match, and the regular expression itself.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub fn matches(&self, e: &Element<'_>) -> Result<bool> {
        match e.tag() {
            0x02 | 0x0E => {
                let b = e.value_bytes();
                b.get(4..b.len().saturating_sub(1)).map_or(Ok(false), |text| self.is_match(text))
            }
            0x0B => Ok(match e.value() {
                document::ValueRef::Regex(source, options) => {
                    source == self.source && options == self.options
                }
                _ => false,
            }),
            _ => Ok(false),
        }
    }

    /// The text every match begins with, when the pattern is anchored and case matters; and whether the pattern says
    /// nothing beyond it (`^abc` or `^abc.*`).
    pub fn prefix(&self) -> Option<(String, bool)> {
        if self.options.chars().any(|c| c != 's') {
            return None;
        }
        let rest = self.source.strip_prefix('^').or_else(|| self.source.strip_prefix("\\A"))?;
        if rest.contains('|') {
            return None;
        }
        let mut prefix = String::new();
        let mut chars = rest.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' | '?' | '{' => {
                    prefix.pop();
                    return (!prefix.is_empty()).then_some((prefix, false));
                }
                '+' => return (!prefix.is_empty()).then_some((prefix, false)),
                '.' if chars.clone().eq(['*']) => return (!prefix.is_empty()).then_some((prefix, true)),
                '\\' => match chars.next() {
                    Some(escaped) if !escaped.is_ascii_alphanumeric() => prefix.push(escaped),
                    _ => return (!prefix.is_empty()).then_some((prefix, false)),
                },
                '.' | '[' | '(' | ')' | '$' | '^' => return (!prefix.is_empty()).then_some((prefix, false)),
                plain => prefix.push(plain),
            }
        }
        (!prefix.is_empty()).then_some((prefix, true))
    }
}
