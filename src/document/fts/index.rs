//! What a text index is: which fields it reads with which weight, and in which language.

use super::language::{Language, Sensitive};
use crate::{Doc, Document, Result, Value, ValueRef, bail, meter};
use std::collections::BTreeMap;

/// The wildcard of a text index on every string of a document.
const EVERYTHING: &str = "$**";
/// Bytes of text taken apart into terms for one unit of work.
const BYTES_A_UNIT: usize = 2;

/// The definition of a text index.
#[derive(Clone, Debug, PartialEq)]
pub struct TextIndex {
    /// By path, in the order of paths.
    weights: Vec<(String, f64)>,
    everything: Option<f64>,
    default_language: Language,
    language_override: String,
    version: i32,
}

/// An indexed string of a document, with its weight and language.
pub(super) struct Text<'d> {
    pub text: &'d str,
    pub weight: f64,
    pub language: Language,
}

impl TextIndex {
    /// Reads `{weights, default_language, language_override, textIndexVersion}` as listIndexes shows them.
    ///
    /// # Errors
    /// CannotCreateIndex (67) for a language that is not known.
    pub fn parse(spec: &Document) -> Result<TextIndex> {
        let name = spec.get_str("default_language").unwrap_or("english");
        let Some(default_language) = Language::find(name) else {
            bail!(
                CANNOT_CREATE_INDEX,
                "default_language is not valid: unsupported language: \"{name}\" for text index version 3"
            );
        };
        let mut weights: Vec<(String, f64)> = spec
            .get_document("weights")
            .into_iter()
            .flat_map(Document::iter)
            .map(|(path, v)| (path.to_string(), v.as_f64().unwrap_or(1.0)))
            .collect();
        weights.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(TextIndex {
            everything: weights.iter().find(|(p, _)| p == EVERYTHING).map(|(_, w)| *w),
            weights: weights.into_iter().filter(|(p, _)| p != EVERYTHING).collect(),
            default_language,
            language_override: spec.get_str("language_override").unwrap_or("language").to_string(),
            version: spec.get_i64("textIndexVersion").and_then(|v| i32::try_from(v).ok()).unwrap_or(3),
        })
    }
    /// `textIndexVersion`.
    pub fn version(&self) -> i32 {
        self.version
    }
    pub fn default_language(&self) -> Language {
        self.default_language
    }
    /// Each term of the document with its score.
    ///
    /// # Errors
    /// 17261 and 17262 for a language of its own, or of a part, that is no string or unknown; those of [`meter::spend`].
    pub fn terms(&self, doc: Doc<'_>) -> Result<BTreeMap<String, f64>> {
        let (mut out, mut spent) = (BTreeMap::new(), Ok(()));
        self.walk(doc, "", self.default_language, false, &mut |t| {
            if spent.is_ok() {
                spent = meter::spend(1 + t.text.len() / BYTES_A_UNIT);
            }
            if spent.is_ok() {
                add_scores(&t, Sensitive::default(), &mut out);
            }
        })?;
        spent.map(|()| out)
    }

    pub(super) fn scores(&self, doc: Doc<'_>, sensitive: Sensitive) -> BTreeMap<String, f64> {
        let mut out = BTreeMap::new();
        self.for_each_text(doc, &mut |t| add_scores(&t, sensitive, &mut out));
        out
    }

    /// Calls `f` with every indexed string of a document that is in the index.
    pub(super) fn for_each_text<'d>(&self, doc: Doc<'d>, f: &mut dyn FnMut(Text<'d>)) {
        // A document with a language that is not known does not come into the index.
        let _ = self.walk(doc, "", self.default_language, false, f);
    }

    /// The language of a document, or of a part of one in this language.
    fn language_of(&self, doc: Doc<'_>, around: Language) -> Result<Language> {
        match doc.get(&self.language_override) {
            None => Ok(around),
            Some(ValueRef::String(name)) => match Language::find(name) {
                Some(language) => Ok(language),
                None => bail!(17262, "language override unsupported: {name}"),
            },
            Some(_) => bail!(17261, "found language override field in document with non-string type"),
        }
    }

    fn walk<'d>(
        &self,
        doc: Doc<'d>,
        path: &str,
        language: Language,
        is_array: bool,
        f: &mut dyn FnMut(Text<'d>),
    ) -> Result<()> {
        let language = if is_array { language } else { self.language_of(doc, language)? };
        for e in doc.iter() {
            let own;
            let path = match (is_array, path) {
                (true, path) => path,
                (false, "") => e.name(),
                (false, path) => {
                    own = format!("{path}.{}", e.name());
                    own.as_str()
                }
            };
            match e.value() {
                ValueRef::String(text) => {
                    if let Some(weight) = self.weight_of(path) {
                        f(Text { text, weight, language });
                    }
                }
                ValueRef::Document(d) if self.leads_on(path) => self.walk(d, path, language, false, f)?,
                ValueRef::Array(d) if self.leads_on(path) => self.walk(d, path, language, true, f)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn weight_of(&self, path: &str) -> Option<f64> {
        let at = self.weights.binary_search_by(|(p, _)| p.as_str().cmp(path));
        at.map_or(self.everything, |at| Some(self.weights[at].1))
    }
    /// Whether an indexed string may stand at the path or below it.
    fn leads_on(&self, path: &str) -> bool {
        let below = |p: &str| p.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        // The first in order that may be below.
        let at = self.weights.partition_point(|(p, _)| p.bytes().lt(path.bytes().chain([b'.'])));
        self.weight_of(path).is_some() || self.weights.get(at).is_some_and(|(p, _)| below(p))
    }

    /// The paths and weights of a key pattern's text fields, in listIndexes' order.
    pub fn weights_document(weights: &BTreeMap<String, Value>) -> Document {
        weights.iter().map(|(path, w)| (path.clone(), w.clone())).collect()
    }
}

fn add_scores(t: &Text<'_>, sensitive: Sensitive, out: &mut BTreeMap<String, f64>) {
    let terms = t.language.terms(t.text, sensitive);
    let tokens = terms.len() as f64;
    // Occurrences, and their sum with each counting half of the one before.
    let mut found: BTreeMap<String, (i32, f64)> = BTreeMap::new();
    for term in terms {
        let (count, sum) = found.entry(term).or_default();
        *sum += 0.5f64.powi(*count);
        *count += 1;
    }
    for (term, (count, sum)) in found {
        let share = 0.5 * f64::from(count) / tokens + 0.5;
        let whole = if t.text.eq_ignore_ascii_case(&term) { 1.1 } else { 1.0 };
        *out.entry(term).or_default() += t.weight * sum * share * whole;
    }
}
