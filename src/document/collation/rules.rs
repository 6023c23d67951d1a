//! From a collation document to ICU's rules.
//!
//! The rules are CLDR's, compiled in. Of the variants that the real server knows three are not among them: `search`
//! and `searchjl` (which are not for sorting), `big5han` and `gb2312han`; and the direction of accents is the locale's:
//! `backwards` can be chosen only where the language has no rules of its own, by taking those of Canadian French,
//! which has nothing but that.

use super::spec::Spec;
use crate::{Error, Result, bail, err};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering, CollationType};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;

/// The languages the real server has rules for; any other locale is refused. (Its manual: "Collation Locales and
/// Default Parameters".)
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "bs", "ca", "ceb", "chr", "cs", "cy", "da", "de",
    "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu", "ha",
    "haw", "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn",
    "ko", "kok", "ky", "lb", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb",
    "ne", "nl", "nn", "om", "or", "pa", "pl", "ps", "pt", "ro", "ru", "se", "si", "sk", "sl", "smn", "sq",
    "sr", "sv", "sw", "ta", "te", "th", "tk", "to", "tr", "ug", "uk", "ur", "vi", "wae", "yi", "yo", "zh",
    "zu",
];

/// Languages without rules of their own, whose order of accents can therefore be turned round.
const UNTAILORED: &[&str] = &["en", "fr", "it", "pt", "nl", "id", "ms", "ga", "lb", "sw", "zu", "haw"];

pub(super) fn of(spec: &Spec) -> Result<CollatorBorrowed<'static>> {
    let mut preferences = preferences(spec)?;
    preferences.case_first = spec.case_first.as_deref().map(|c| match c {
        "upper" => CollationCaseFirst::Upper,
        "lower" => CollationCaseFirst::Lower,
        _ => CollationCaseFirst::False,
    });
    preferences.numeric_ordering = spec.numeric_ordering.map(|on| match on {
        true => CollationNumericOrdering::True,
        false => CollationNumericOrdering::False,
    });
    CollatorBorrowed::try_new(preferences, options(spec))
        .map_err(|error| err!(BAD_VALUE, "no rules for locale {}: {error}", spec.locale))
}

fn options(spec: &Spec) -> CollatorOptions {
    let mut options = CollatorOptions::default();
    options.strength = Some(match spec.strength {
        Some(1) => Strength::Primary,
        Some(2) => Strength::Secondary,
        Some(4) => Strength::Quaternary,
        Some(5) => Strength::Identical,
        _ => Strength::Tertiary,
    });
    options.case_level = Some(if spec.case_level == Some(true) { CaseLevel::On } else { CaseLevel::Off });
    options.max_variable = Some(match spec.max_variable.as_deref() {
        Some("space") => MaxVariable::Space,
        _ => MaxVariable::Punctuation,
    });
    options.alternate_handling = spec.alternate.as_deref().map(|a| match a {
        "shifted" => AlternateHandling::Shifted,
        _ => AlternateHandling::NonIgnorable,
    });
    options
}

/// Reads `fr_CA` and `de@collation=phonebook`.
fn preferences(spec: &Spec) -> Result<CollatorPreferences> {
    let (place, keyword) = spec.locale.split_once('@').unwrap_or((&spec.locale, ""));
    if !is_canonical(place) || !LANGUAGES.contains(&spec.language()) {
        return Err(invalid(spec));
    }
    let parsed = tag(spec, place)?.parse::<Locale>().map_err(|_| invalid(spec))?;
    let mut preferences = CollatorPreferences::from(&parsed);
    match keyword.split_once('=') {
        None if keyword.is_empty() => {}
        Some(("collation", kind)) => preferences.collation_type = Some(collation_type(spec, kind)?),
        _ => return Err(invalid(spec)),
    }
    Ok(preferences)
}

/// The language tag whose rules are to be taken.
fn tag(spec: &Spec, place: &str) -> Result<String> {
    let canadian = place == "fr_CA";
    Ok(match (place, spec.backwards) {
        ("en_US_POSIX", Some(true)) => bail!(NOT_IMPLEMENTED, "backwards is not implemented for en_US_POSIX"),
        ("en_US_POSIX", _) => "en-US-posix".to_string(),
        (_, Some(false)) if canadian => "fr".to_string(),
        (_, Some(true)) if canadian || UNTAILORED.contains(&spec.language()) => "fr-CA".to_string(),
        (_, Some(true)) => bail!(
            NOT_IMPLEMENTED,
            "the collation option backwards: true is not implemented for locale {}",
            spec.locale
        ),
        _ => place.replace('_', "-"),
    })
}

/// Whether the parts are written as ICU writes them: `zh_Hant_TW`, `en_US_POSIX`.
fn is_canonical(place: &str) -> bool {
    let mut parts = place.split('_');
    let language = parts.next().unwrap_or("");
    let lower = |s: &str| s.bytes().all(|b| b.is_ascii_lowercase());
    let title = |s: &str| s.len() == 4 && s[..1].bytes().all(|b| b.is_ascii_uppercase()) && lower(&s[1..]);
    let region = |s: &str| {
        (s.len() == 2 && s.bytes().all(|b| b.is_ascii_uppercase()))
            || (s.len() == 3 && s.bytes().all(|b| b.is_ascii_digit()))
    };
    if !(2..=3).contains(&language.len()) || !lower(language) || !place.is_ascii() {
        return false;
    }
    match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => true,
        (Some(a), None, _) => title(a) || region(a),
        (Some(a), Some(b), None) => (title(a) && region(b)) || place == "en_US_POSIX",
        _ => false,
    }
}

fn collation_type(spec: &Spec, name: &str) -> Result<CollationType> {
    Ok(match name {
        "standard" => CollationType::Standard,
        "phonebook" => CollationType::Phonebk,
        "dictionary" => CollationType::Dict,
        "traditional" => CollationType::Trad,
        "pinyin" => CollationType::Pinyin,
        "stroke" => CollationType::Stroke,
        "zhuyin" => CollationType::Zhuyin,
        "compat" => CollationType::Compat,
        "eor" => CollationType::Eor,
        "unihan" => CollationType::Unihan,
        "phonetic" => CollationType::Phonetic,
        "search" | "searchjl" | "big5han" | "gb2312han" => bail!(
            NOT_IMPLEMENTED,
            "the collation variant '{name}' of locale {} is not implemented",
            spec.locale
        ),
        _ => return Err(invalid(spec)),
    })
}

fn invalid(spec: &Spec) -> Error {
    err!(BAD_VALUE, "Field 'locale' is invalid in: {{ locale: \"{}\" }}", spec.locale)
}
