//! `_compareStringsWithCollation(left, right, collation)`: -1, 0 or 1, in the order of a collation.
//!
//! The rules of the languages are those of CLDR, as on the servers; `{locale: "simple"}` compares bytes. Options which
//! the collator here cannot follow are refused rather than ignored.

use crate::natives::{define, document};
use crate::{Shell, errors};
use document::{Doc, Error, ValueRef, bail, codes};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering, CollationType};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use rquickjs::{Ctx, Result, String as JsString, Value};
use std::cmp::Ordering;
use std::rc::Rc;

#[cfg(test)]
mod tests;

/// The languages the servers have rules for; any other locale is refused.
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "bs", "ca", "ceb", "chr", "cs", "cy", "da", "de",
    "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu", "ha",
    "haw", "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn",
    "ko", "kok", "ky", "lb", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb",
    "ne", "nl", "nn", "om", "or", "pa", "pl", "ps", "pt", "ro", "ru", "se", "si", "sk", "sl", "smn", "sq",
    "sr", "sv", "sw", "ta", "te", "th", "tk", "to", "tr", "ug", "uk", "ur", "vi", "wae", "yi", "yo", "zh",
    "zu",
];

const NAME: &str = "_compareStringsWithCollation";

pub fn register<'js>(ctx: &Ctx<'js>, _shell: &Rc<Shell>) -> Result<()> {
    define(
        ctx,
        NAME,
        |ctx: Ctx<'js>, left: JsString<'js>, right: JsString<'js>, collation: Value<'js>| -> Result<i32> {
            let collation = document(&ctx, &collation, NAME)?;
            let order = compare(&left.to_string()?, &right.to_string()?, collation.doc());
            order.map(|order| order as i32).map_err(|error| errors::throw_document(&ctx, &error))
        },
    )
}

fn compare(left: &str, right: &str, collation: Doc<'_>) -> document::Result<Ordering> {
    let Some(locale) = collation.get_str("locale") else {
        bail!(codes::BAD_VALUE, "BSON field 'locale' of the collation is missing or no string")
    };
    if locale == "simple" {
        if collation.iter().count() > 1 {
            bail!(codes::BAD_VALUE, "A collation of locale simple takes no other options")
        }
        return Ok(left.cmp(right));
    }
    let collator = collator(locale, collation)?;
    Ok(collator.compare(left, right))
}

fn collator(locale: &str, collation: Doc<'_>) -> document::Result<CollatorBorrowed<'static>> {
    let mut preferences = preferences(locale)?;
    let mut options = CollatorOptions::default();
    // The root's rules would say the same; said here, they hold for every locale.
    options.strength = Some(Strength::Tertiary);
    options.max_variable = Some(MaxVariable::Punctuation);
    for element in collation.iter().filter(|element| element.name() != "locale") {
        set(&mut preferences, &mut options, element.name(), element.value())?;
    }
    CollatorBorrowed::try_new(preferences, options)
        .map_err(|error| Error::new(codes::BAD_VALUE, format!("no rules for locale {locale}: {error}")))
}

/// Reads `fr_CA` and `de@collation=phonebook`.
fn preferences(locale: &str) -> document::Result<CollatorPreferences> {
    let invalid =
        || Error::new(codes::BAD_VALUE, format!("Field 'locale' is invalid in collation: {locale}"));
    let (place, keyword) = locale.split_once('@').unwrap_or((locale, ""));
    let parsed: Locale = place.replace('_', "-").parse().map_err(|_| invalid())?;
    if !LANGUAGES.contains(&parsed.id.language.as_str()) {
        return Err(invalid());
    }
    let mut preferences = CollatorPreferences::from(&parsed);
    match keyword.split_once('=') {
        None if keyword.is_empty() => {}
        Some(("collation", kind)) => {
            preferences.collation_type = Some(collation_type(kind).ok_or_else(invalid)?)
        }
        _ => return Err(invalid()),
    }
    Ok(preferences)
}

fn collation_type(name: &str) -> Option<CollationType> {
    Some(match name {
        "standard" => CollationType::Standard,
        "phonebook" => CollationType::Phonebk,
        "dictionary" => CollationType::Dict,
        "traditional" => CollationType::Trad,
        "pinyin" => CollationType::Pinyin,
        "stroke" => CollationType::Stroke,
        "zhuyin" => CollationType::Zhuyin,
        "compat" => CollationType::Compat,
        "eor" => CollationType::Eor,
        _ => return None,
    })
}

fn set(
    preferences: &mut CollatorPreferences,
    options: &mut CollatorOptions,
    name: &str,
    value: ValueRef<'_>,
) -> document::Result<()> {
    match (name, value.as_str(), value.as_bool()) {
        ("strength", ..) => options.strength = Some(strength(value)?),
        ("caseLevel", _, Some(on)) => {
            options.case_level = Some(if on { CaseLevel::On } else { CaseLevel::Off })
        }
        ("caseFirst", Some("off"), _) => preferences.case_first = Some(CollationCaseFirst::False),
        ("caseFirst", Some("upper"), _) => preferences.case_first = Some(CollationCaseFirst::Upper),
        ("caseFirst", Some("lower"), _) => preferences.case_first = Some(CollationCaseFirst::Lower),
        ("numericOrdering", _, Some(true)) => {
            preferences.numeric_ordering = Some(CollationNumericOrdering::True)
        }
        ("numericOrdering", _, Some(false)) => {
            preferences.numeric_ordering = Some(CollationNumericOrdering::False)
        }
        ("alternate", Some("non-ignorable"), _) => {
            options.alternate_handling = Some(AlternateHandling::NonIgnorable)
        }
        ("alternate", Some("shifted"), _) => options.alternate_handling = Some(AlternateHandling::Shifted),
        ("maxVariable", Some("punct"), _) => options.max_variable = Some(MaxVariable::Punctuation),
        ("maxVariable", Some("space"), _) => options.max_variable = Some(MaxVariable::Space),
        // Texts are always compared in their normal form here.
        ("normalization", _, Some(_)) | ("backwards", _, Some(false)) | ("version", Some(_), _) => {}
        ("backwards", _, Some(true)) => {
            bail!(codes::BAD_VALUE, "the shell cannot compare with the collation option backwards: true")
        }
        _ => bail!(codes::BAD_VALUE, "Field '{name}' is unknown or invalid in collation"),
    }
    Ok(())
}

fn strength(value: ValueRef<'_>) -> document::Result<Strength> {
    Ok(match value.as_f64() {
        Some(1.0) => Strength::Primary,
        Some(2.0) => Strength::Secondary,
        Some(3.0) => Strength::Tertiary,
        Some(4.0) => Strength::Quaternary,
        Some(5.0) => Strength::Identical,
        _ => bail!(codes::BAD_VALUE, "Field 'strength' of a collation must be a number from 1 to 5"),
    })
}
