//! The collation document: reading it, checking it, and filling in what was left out.

use crate::{Doc, Document, Element, Error, Result, Value, ValueRef, bail, err, number};
use icu_collator::CollatorBorrowed;
use icu_collator::options::{AlternateHandling, CaseLevel};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};

/// The version of the rules that the real server names. DO NOT CHANGE: clients send it back.
const VERSION: &str = "57.1";

/// Locales whose rules normalize unless told otherwise; shown, but of no consequence: here every text is compared in
/// its normal form. (CLDR's collation data, `[normalization on]`.)
const NORMALIZING: &[&str] = &[
    "ar", "as", "bn", "fa", "gu", "he", "hi", "kn", "kok", "ml", "mr", "my", "ne", "or", "pa", "ta", "te",
    "th", "ur", "vi", "yi",
];

/// What was asked for; `None` where the locale decides.
#[derive(Clone, Debug, Default)]
pub(super) struct Spec {
    pub locale: String,
    pub case_level: Option<bool>,
    pub case_first: Option<String>,
    pub strength: Option<i64>,
    pub numeric_ordering: Option<bool>,
    pub alternate: Option<String>,
    pub max_variable: Option<String>,
    pub normalization: Option<bool>,
    pub backwards: Option<bool>,
}

impl Spec {
    pub(super) fn parse(d: Doc<'_>) -> Result<Spec> {
        let mut spec = Spec::default();
        let mut version = None;
        let mut located = false;
        for e in d.iter() {
            let absent = matches!(e.value(), ValueRef::Null | ValueRef::Undefined);
            match e.name() {
                "backwards" => spec.backwards = Some(boolean(&e)?),
                "locale" | "caseLevel" | "caseFirst" | "strength" | "numericOrdering" | "alternate"
                | "maxVariable" | "normalization" | "version"
                    if absent => {}
                "locale" => (spec.locale, located) = (string(&e)?, true),
                "caseLevel" => spec.case_level = Some(boolean(&e)?),
                "caseFirst" => spec.case_first = Some(one_of(&e, &["upper", "lower", "off"])?),
                "strength" => spec.strength = Some(strength(&e)?),
                "numericOrdering" => spec.numeric_ordering = Some(boolean(&e)?),
                "alternate" => spec.alternate = Some(one_of(&e, &["non-ignorable", "shifted"])?),
                "maxVariable" => spec.max_variable = Some(one_of(&e, &["punct", "space"])?),
                "normalization" => spec.normalization = Some(boolean(&e)?),
                "version" => version = Some(string(&e)?),
                name => bail!(IDL_UNKNOWN_FIELD, "BSON field 'collation.{name}' is an unknown field."),
            }
        }
        if !located {
            bail!(IDL_FAILED_TO_PARSE, "BSON field 'collation.locale' is missing but a required field");
        }
        if let Some(version) = version
            && version != VERSION
        {
            bail!(
                INCOMPATIBLE_COLLATION_VERSION,
                "Requested collation version {version} but the only available collator version was {VERSION}. \
                 Requested collation spec: {}",
                crate::extended_json::to_relaxed(&Value::Document(d.to_document()))
            );
        }
        if !spec.is_simple() {
            spec.check()?;
        }
        Ok(spec)
    }

    pub(super) fn is_simple(&self) -> bool {
        self.locale == "simple"
    }

    fn check(&self) -> Result<()> {
        let strength = self.strength.unwrap_or(3);
        if self.case_first.as_deref().is_some_and(|c| c != "off")
            && strength < 3
            && self.case_level != Some(true)
        {
            bail!(
                BAD_VALUE,
                "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2"
            );
        }
        if self.backwards == Some(true) && strength == 1 {
            bail!(BAD_VALUE, "'backwards' is invalid with 'strength' of 1");
        }
        Ok(())
    }

    /// The language of the locale: `fr` of `fr_CA@collation=..`.
    pub(super) fn language(&self) -> &str {
        self.locale.split(['_', '@']).next().unwrap_or(&self.locale)
    }

    /// All members, those not asked for as the locale has them.
    pub(super) fn filled_in(&self, rules: &CollatorBorrowed<'static>) -> Document {
        let resolved = rules.resolved_options();
        let case_first = match resolved.case_first {
            CollationCaseFirst::Upper => "upper",
            CollationCaseFirst::Lower => "lower",
            _ => "off",
        };
        let shifted = resolved.alternate_handling == AlternateHandling::Shifted;
        let mut d = Document::new();
        d.push("locale", self.locale.as_str());
        d.push("caseLevel", resolved.case_level == CaseLevel::On);
        d.push("caseFirst", case_first);
        d.push("strength", self.strength.unwrap_or(3) as i32);
        d.push("numericOrdering", resolved.numeric == CollationNumericOrdering::True);
        d.push("alternate", if shifted { "shifted" } else { "non-ignorable" });
        d.push("maxVariable", self.max_variable.as_deref().unwrap_or("punct"));
        d.push("normalization", self.normalization.unwrap_or(NORMALIZING.contains(&self.language())));
        d.push("backwards", self.backwards.unwrap_or(self.locale == "fr_CA"));
        d.push("version", VERSION);
        d
    }
}

fn wrong_type(e: &Element<'_>, expected: &str) -> Error {
    err!(
        TYPE_MISMATCH,
        "BSON field 'collation.{}' is the wrong type '{}', expected {expected}",
        e.name(),
        e.value().type_name()
    )
}

fn boolean(e: &Element<'_>) -> Result<bool> {
    e.value().as_bool().ok_or_else(|| wrong_type(e, "type 'bool'"))
}

fn string(e: &Element<'_>) -> Result<String> {
    match e.value() {
        ValueRef::String(s) => Ok(s.to_string()),
        _ => Err(wrong_type(e, "type 'string'")),
    }
}

fn one_of(e: &Element<'_>, allowed: &[&str]) -> Result<String> {
    let s = string(e)?;
    if !allowed.contains(&s.as_str()) {
        bail!(BAD_VALUE, "Enumeration value '{s}' for field 'collation.{}' is not a valid value.", e.name());
    }
    Ok(s)
}

/// Doubles are cut and decimals rounded half to even.
fn strength(e: &Element<'_>) -> Result<i64> {
    let n = match e.value() {
        ValueRef::Decimal128(d) => d.round().to_i64_saturating(),
        v if v.is_number() => number::to_i64_saturating(&v.to_value()).unwrap_or(0),
        _ => return Err(wrong_type(e, "types '[long, int, decimal, double]'")),
    };
    match n {
        1..=5 => Ok(n),
        ..1 => bail!(BAD_VALUE, "BSON field 'strength' value must be >= 1, actual value '{n}'"),
        _ => bail!(BAD_VALUE, "BSON field 'strength' value must be <= 5, actual value '{n}'"),
    }
}
