//! Languages: how a text is cut into tokens, which of them count, and what they are reduced to.

use super::delimiters;
use rust_stemmers::{Algorithm, Stemmer};
use std::collections::HashSet;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A language of text search; `none` has neither stemmer nor stop words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Language(&'static Row);

#[derive(PartialEq, Eq)]
struct Row {
    name: &'static str,
    /// ISO 639-1.
    code: &'static str,
    algorithm: Option<Algorithm>,
}

const fn row(name: &'static str, code: &'static str, algorithm: Algorithm) -> Row {
    Row { name, code, algorithm: Some(algorithm) }
}

const LANGUAGES: &[Row] = &[
    Row { name: "none", code: "none", algorithm: None },
    row("danish", "da", Algorithm::Danish),
    row("dutch", "nl", Algorithm::Dutch),
    row("english", "en", Algorithm::English),
    row("finnish", "fi", Algorithm::Finnish),
    row("french", "fr", Algorithm::French),
    row("german", "de", Algorithm::German),
    row("hungarian", "hu", Algorithm::Hungarian),
    row("italian", "it", Algorithm::Italian),
    row("norwegian", "nb", Algorithm::Norwegian),
    row("portuguese", "pt", Algorithm::Portuguese),
    row("romanian", "ro", Algorithm::Romanian),
    row("russian", "ru", Algorithm::Russian),
    row("spanish", "es", Algorithm::Spanish),
    row("swedish", "sv", Algorithm::Swedish),
    row("turkish", "tr", Algorithm::Turkish),
];

/// The stop words of each language, in the order of the table.
static STOP_WORDS: LazyLock<Vec<HashSet<&'static str>>> = LazyLock::new(|| {
    let words = |r: &Row| {
        let code = if r.code == "nb" { "no" } else { r.code };
        stop_words::lookup(code).into_iter().flatten().copied().collect()
    };
    LANGUAGES.iter().map(words).collect()
});

impl std::fmt::Debug for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

/// Which differences between texts count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sensitive {
    pub case: bool,
    pub diacritics: bool,
}

impl Language {
    /// By its name or ISO code, in any case.
    pub fn find(name: &str) -> Option<Language> {
        let name = name.to_lowercase();
        let matches = |r: &&Row| r.name == name || r.code == name || (r.code == "nb" && name == "no");
        LANGUAGES.iter().find(matches).map(Language)
    }

    /// The terms of a text, in order: its tokens without stop words, folded as far as differences do not count, and stemmed.
    pub(super) fn terms(self, text: &str, sensitive: Sensitive) -> Vec<String> {
        let stemmer = self.0.algorithm.map(Stemmer::create);
        let stop = LANGUAGES.iter().position(|r| r == self.0).and_then(|i| STOP_WORDS.get(i));
        let is_stop = |token: &str| stop.is_some_and(|words| words.contains(token.to_lowercase().as_str()));
        let delimiter = |c: char| is_delimiter(c, self.0.name == "english");
        let tokens = text.split(delimiter).filter(|t| !t.is_empty() && !is_stop(t));
        let reduce = |token: &str| {
            let folded = fold(token, Sensitive { diacritics: true, ..sensitive });
            let stemmed = stemmer.as_ref().map_or(folded.clone(), |s| s.stem(&folded).into_owned());
            fold(&stemmed, Sensitive { case: true, ..sensitive })
        };
        tokens.map(reduce).collect()
    }
}

/// Whether a character stands between tokens; in English an apostrophe does not.
fn is_delimiter(c: char, english: bool) -> bool {
    match c {
        '\'' | '\u{2019}' => !english,
        '\0' => true,
        c => delimiters::contains(c),
    }
}

/// The text without the differences that do not count.
pub(super) fn fold(text: &str, sensitive: Sensitive) -> String {
    let lowered = if sensitive.case { text.to_string() } else { text.to_lowercase() };
    if sensitive.diacritics || lowered.is_ascii() {
        return lowered;
    }
    lowered.nfd().filter(|c| !is_combining_mark(*c)).nfc().collect()
}
