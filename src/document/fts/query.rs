//! `$text`: a search text taken apart, and asked of documents.
//!
//! ```text
//! coffee -tea "black and white"     any of coffee, black, white; not tea; the phrase itself
//! ```

use super::index::TextIndex;
use super::language::{Language, Sensitive, fold};
use crate::{Doc, Document, Result, Value, doc, meter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A parsed `$text`.
#[derive(Clone, Debug, PartialEq)]
pub struct TextQuery {
    index: Arc<TextIndex>,
    /// As it was written, with all its members.
    spec: Document,
    sensitive: Sensitive,
    /// Any of them.
    terms: Vec<String>,
    /// The terms as an index holds them.
    lookup: Vec<String>,
    /// None of them.
    excluded: Vec<String>,
    phrases: Phrases,
    excluded_phrases: Phrases,
}

/// Phrases, folded.
#[derive(Clone, Debug, Default, PartialEq)]
struct Phrases {
    written: Vec<String>,
    /// Each once, in order.
    distinct: Vec<String>,
}

impl Phrases {
    fn of(written: Vec<String>) -> Phrases {
        let mut distinct = written.clone();
        distinct.sort_unstable();
        distinct.dedup();
        Phrases { written, distinct }
    }
}

/// Bytes of a text in which a phrase is looked for in the time of a unit of work.
const BYTES_A_UNIT: usize = 64;

impl TextQuery {
    /// `spec` is what explain shows.
    pub fn new(
        index: Arc<TextIndex>,
        search: &str,
        language: Option<Language>,
        case_sensitive: bool,
        diacritic_sensitive: bool,
        spec: Document,
    ) -> TextQuery {
        let language = language.unwrap_or(index.default_language());
        let sensitive = Sensitive { case: case_sensitive, diacritics: diacritic_sensitive };
        let mut query = TextQuery {
            index,
            spec,
            sensitive,
            terms: Vec::new(),
            lookup: Vec::new(),
            excluded: Vec::new(),
            phrases: Phrases::default(),
            excluded_phrases: Phrases::default(),
        };
        let (mut phrases, mut excluded_phrases) = (Vec::new(), Vec::new());
        for part in parts(search) {
            match (part.phrase, part.negated) {
                (true, true) => excluded_phrases.push(fold(part.text, sensitive)),
                (true, false) => phrases.push(fold(part.text, sensitive)),
                (false, true) => query.excluded.extend(language.terms(part.text, sensitive)),
                (false, false) => {}
            }
            if !part.negated {
                query.terms.extend(language.terms(part.text, sensitive));
                query.lookup.extend(language.terms(part.text, Sensitive::default()));
            }
        }
        (query.phrases, query.excluded_phrases) = (Phrases::of(phrases), Phrases::of(excluded_phrases));
        for list in [&mut query.terms, &mut query.lookup, &mut query.excluded] {
            list.sort_unstable();
            list.dedup();
        }
        query
    }

    pub fn spec(&self) -> &Document {
        &self.spec
    }
    /// What is looked for, as explain shows it.
    pub fn parsed(&self) -> Document {
        let list = |list: &[String]| Value::Array(list.iter().map(|s| Value::from(s.as_str())).collect());
        doc! {
            "terms": list(&self.terms), "negatedTerms": list(&self.excluded),
            "phrases": list(&self.phrases.written), "negatedPhrases": list(&self.excluded_phrases.written),
        }
    }
    pub fn index(&self) -> &TextIndex {
        &self.index
    }
    /// The terms under which an index holds every document that can match.
    pub fn lookup(&self) -> &[String] {
        &self.lookup
    }
    /// Whether a document matches.
    ///
    /// # Errors
    /// Those of [`meter::spend`].
    pub fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        if self.terms.is_empty() {
            return Ok(false);
        }
        let found = self.index.scores(doc, self.sensitive);
        let holds = |term: &String| found.contains_key(term);
        if !self.terms.iter().any(holds) || self.excluded.iter().any(holds) {
            return Ok(false);
        }
        let (wanted, excluded) = (&self.phrases.distinct, &self.excluded_phrases.distinct);
        if wanted.is_empty() && excluded.is_empty() {
            return Ok(true);
        }
        let mut texts = Vec::new();
        self.index.for_each_text(doc, &mut |t| texts.push(fold(t.text, self.sensitive)));
        let phrases = wanted.iter().map(|p| (p, true)).chain(excluded.iter().map(|p| (p, false)));
        for (phrase, expected) in phrases {
            if has_phrase(&texts, phrase)? != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }
    /// The sum of the scores of the terms in the index, which tells no cases or diacritics apart.
    pub fn score(&self, doc: Doc<'_>) -> f64 {
        let found: BTreeMap<String, f64> = self.index.scores(doc, Sensitive::default());
        self.lookup.iter().filter_map(|t| found.get(t)).sum()
    }
}

fn has_phrase(texts: &[String], phrase: &str) -> Result<bool> {
    for text in texts {
        meter::spend(1 + text.len() / BYTES_A_UNIT)?;
        if text.contains(phrase) {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Part<'s> {
    text: &'s str,
    phrase: bool,
    negated: bool,
}

/// Words and phrases of a search text. A minus at the beginning of a word excludes it; one inside is punctuation.
fn parts(search: &str) -> Vec<Part<'_>> {
    let mut out = Vec::new();
    let mut rest = search.trim_start();
    while !rest.is_empty() {
        let stripped = rest.strip_prefix('-');
        let negated = stripped.is_some();
        rest = stripped.unwrap_or(rest);
        let quoted = rest.strip_prefix('"').and_then(|r| r.find('"').map(|end| (&r[..end], &r[end + 1..])));
        let (text, after) = match quoted {
            Some((phrase, after)) => (phrase, after),
            None => {
                let begin = rest.strip_prefix('"').unwrap_or(rest);
                let end = begin.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(begin.len());
                begin.split_at(end)
            }
        };
        out.push(Part { text, phrase: quoted.is_some(), negated });
        rest = after.trim_start();
    }
    out
}
