//! `$text`: a search text taken apart, and asked of documents.
//!
//! ```text
//! coffee -tea "black and white"     any of coffee, black, white; not tea; the phrase itself
//! ```

use super::index::TextIndex;
use super::language::{Language, Sensitive, fold};
use crate::{Doc, Document, Value, doc};
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
    /// Each of them, folded.
    phrases: Vec<String>,
    excluded_phrases: Vec<String>,
}

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
            phrases: Vec::new(),
            excluded_phrases: Vec::new(),
        };
        for part in parts(search) {
            query.take(&part, language);
        }
        for list in [&mut query.terms, &mut query.lookup, &mut query.excluded] {
            list.sort_unstable();
            list.dedup();
        }
        query
    }

    fn take(&mut self, part: &Part<'_>, language: Language) {
        match (part.phrase, part.negated) {
            (true, true) => self.excluded_phrases.push(fold(part.text, self.sensitive)),
            (true, false) => self.phrases.push(fold(part.text, self.sensitive)),
            (false, true) => self.excluded.extend(language.terms(part.text, self.sensitive)),
            (false, false) => {}
        }
        if !part.negated {
            self.terms.extend(language.terms(part.text, self.sensitive));
            self.lookup.extend(language.terms(part.text, Sensitive::default()));
        }
    }

    pub fn spec(&self) -> &Document {
        &self.spec
    }
    /// What is looked for, as explain shows it.
    pub fn parsed(&self) -> Document {
        let list = |list: &[String]| Value::Array(list.iter().map(|s| Value::from(s.as_str())).collect());
        doc! {
            "terms": list(&self.terms), "negatedTerms": list(&self.excluded),
            "phrases": list(&self.phrases), "negatedPhrases": list(&self.excluded_phrases),
        }
    }
    pub fn index(&self) -> &TextIndex {
        &self.index
    }
    /// The terms under which an index holds every document that can match.
    pub fn lookup(&self) -> &[String] {
        &self.lookup
    }
    pub fn matches(&self, doc: Doc<'_>) -> bool {
        if self.terms.is_empty() {
            return false;
        }
        let found = self.index.scores(doc, self.sensitive);
        let holds = |term: &String| found.contains_key(term);
        self.terms.iter().any(holds)
            && !self.excluded.iter().any(holds)
            && self.phrases.iter().all(|p| self.has_phrase(doc, p))
            && !self.excluded_phrases.iter().any(|p| self.has_phrase(doc, p))
    }
    /// The sum of the scores of the terms in the index, which tells no cases or diacritics apart.
    pub fn score(&self, doc: Doc<'_>) -> f64 {
        let found: BTreeMap<String, f64> = self.index.scores(doc, Sensitive::default());
        self.lookup.iter().filter_map(|t| found.get(t)).sum()
    }
    fn has_phrase(&self, doc: Doc<'_>, phrase: &str) -> bool {
        let mut found = false;
        self.index.for_each_text(doc, &mut |t| {
            found = found || fold(t.text, self.sensitive).contains(phrase);
        });
        found
    }
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
