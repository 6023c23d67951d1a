//! Regular expressions of the query language: PCRE2 with the options i, m, s, x (and u, which is always on).

use document::{Element, Result, bail, err, meter};
use pcre2::bytes::{Regex, RegexBuilder};
use std::fmt;

/// A compiled pattern. It also equals a stored regular expression of the same pattern and options.
pub struct Pattern {
    pub source: String,
    /// Sorted, as BSON wants them.
    pub options: String,
    regex: Regex,
    backtracks: bool,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.source, self.options)
    }
}

/// The longest pattern the real server accepts.
pub(crate) const PATTERN_LENGTH_MAX: usize = 16384;

/// Whether a pattern may backtrack without end: a repeated group that holds a repetition or a choice, or a reference back.
/// Its matches run until PCRE's limit, some hundred milliseconds, and cannot be interrupted there.
pub(crate) fn backtracks(pattern: &str) -> bool {
    let mut open: Vec<bool> = Vec::new();
    let (mut chars, mut closed) = (pattern.chars().peekable(), false);
    while let Some(c) = chars.next() {
        let was_closed = std::mem::take(&mut closed);
        match c {
            '\\' => match chars.next() {
                Some('1'..='9' | 'g' | 'k') => return true,
                _ => continue,
            },
            '(' => open.push(false),
            ')' => {
                closed = open.pop().unwrap_or(false);
                if closed && let Some(outer) = open.last_mut() {
                    *outer = true;
                }
            }
            '*' | '+' | '{' if was_closed => return true,
            '*' | '+' | '{' | '|' => {
                if let Some(group) = open.last_mut() {
                    *group = true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Units of work of one match over so many bytes. One that may backtrack without end is counted as if it did, so that
/// it does not hold a worker.
pub(crate) fn match_units(backtracks: bool, bytes: usize) -> usize {
    match backtracks && bytes > 24 {
        true => 5 * meter::QUANTUM as usize,
        false => 2 + bytes / 32,
    }
}

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
            backtracks: backtracks(source),
        })
    }

    /// Counts the work of matching so many bytes, before it is done.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub fn spend(&self, bytes: usize) -> Result<()> {
        meter::spend(match_units(self.backtracks, bytes))
    }

    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text).unwrap_or(false)
    }

    /// Strings and symbols that match, and the regular expression itself.
    pub fn matches(&self, e: &Element<'_>) -> bool {
        match e.tag() {
            0x02 | 0x0E => {
                let b = e.value_bytes();
                b.get(4..b.len().saturating_sub(1)).is_some_and(|text| self.is_match(text))
            }
            0x0B => match e.value() {
                document::ValueRef::Regex(source, options) => {
                    source == self.source && options == self.options
                }
                _ => false,
            },
            _ => false,
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
