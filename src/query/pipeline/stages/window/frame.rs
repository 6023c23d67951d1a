//! Frames: which documents of the partition, relative to the one at hand, a window function sees.

use crate::expression::date::{Unit, shift};
use crate::expression::date_format::UTC;
use document::{Document, Result, Value, bail, compare::compare_values, number};
use std::cmp::Ordering;
use std::ops::Range;

/// One end of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound<T> {
    Unbounded,
    Current,
    At(T),
}

/// Both ends are included.
#[derive(Clone, Debug)]
pub enum Frame {
    /// Positions relative to the document's.
    Documents(Bound<i64>, Bound<i64>),
    /// Values of the sort field relative to the document's; with a unit they are dates.
    Range(Bound<Value>, Bound<Value>, Option<Unit>),
}

impl Frame {
    /// The whole partition, which is the default.
    pub const WHOLE: Frame = Frame::Documents(Bound::Unbounded, Bound::Unbounded);

    /// Whether the frame begins with the partition, so that it only ever grows.
    pub fn is_left_unbounded(&self) -> bool {
        matches!(self, Frame::Documents(Bound::Unbounded, _) | Frame::Range(Bound::Unbounded, ..))
    }
    /// Whether the frame is the partition for every document.
    pub fn is_whole(&self) -> bool {
        matches!(
            self,
            Frame::Documents(Bound::Unbounded, Bound::Unbounded)
                | Frame::Range(Bound::Unbounded, Bound::Unbounded, _)
        )
    }

    /// The positions that the document at `at` sees. `keys` are the sort field's values of the partition, in order, and
    /// `before` the range found for the document before, from which the search goes on.
    ///
    /// In a range, too, "current" is the document itself and not all that have its value.
    ///
    /// # Errors
    /// 5429414 and 5429513 when the sort field is no number, or no date; 5429413 when it is a date and there is no unit.
    pub fn at(&self, at: usize, keys: &[Value], before: &Range<usize>) -> Result<Range<usize>> {
        let len = keys.len();
        match self {
            Frame::Documents(lower, upper) => {
                let from = match lower {
                    Bound::Unbounded => 0,
                    Bound::Current => at,
                    Bound::At(n) => position(at, *n, len),
                };
                let to = match upper {
                    Bound::Unbounded => len,
                    Bound::Current => at + 1,
                    Bound::At(n) => position(at, n.saturating_add(1), len),
                };
                Ok(from..to.max(from))
            }
            Frame::Range(lower, upper, unit) => {
                let key = &keys[at];
                check_key(key, *unit)?;
                let first_from = |start: usize, outside: &dyn Fn(&Value) -> bool| {
                    start + keys[start..].iter().take_while(|key| outside(key)).count()
                };
                let from = match lower {
                    Bound::Unbounded => 0,
                    Bound::Current => at,
                    Bound::At(by) => {
                        let least = shifted(key, by, *unit);
                        first_from(before.start, &|key| compare_values(key, &least).is_lt())
                    }
                };
                let to = match upper {
                    Bound::Unbounded => len,
                    Bound::Current => at + 1,
                    Bound::At(by) => {
                        let greatest = shifted(key, by, *unit);
                        first_from(before.end, &|key| compare_values(key, &greatest).is_le())
                    }
                };
                Ok(from..to.max(from))
            }
        }
    }
}

fn position(at: usize, offset: i64, len: usize) -> usize {
    let moved = (at as i64).saturating_add(offset);
    usize::try_from(moved).unwrap_or(0).min(len)
}

fn check_key(key: &Value, unit: Option<Unit>) -> Result<()> {
    match (unit, key) {
        (Some(_), Value::DateTime(_)) => Ok(()),
        (Some(_), other) => bail!(
            5429513,
            "Invalid range: Expected the sortBy field to be a Date, but it was {}",
            other.type_name()
        ),
        (None, Value::DateTime(_)) => {
            bail!(5429413, "For windows that involve date or time ranges, a unit must be provided.")
        }
        (None, key) if key.is_number() => Ok(()),
        (None, other) => bail!(
            5429414,
            "Invalid range: Expected the sortBy field to be a number, but it was {}",
            other.type_name()
        ),
    }
}

/// A key that was checked, moved by the amount; a date beyond those that there are becomes the last one.
fn shifted(key: &Value, by: &Value, unit: Option<Unit>) -> Value {
    match (unit, key) {
        (Some(unit), Value::DateTime(ms)) => {
            let amount = number::to_i64_exact(by).unwrap_or(0);
            let last = if amount < 0 { i64::MIN } else { i64::MAX };
            Value::DateTime(shift(*ms, unit, amount, UTC).unwrap_or(last))
        }
        (_, key) => number::add(key, by).unwrap_or(Value::Null),
    }
}

/// Reads `window: {documents | range, unit}`.
///
/// # Errors
/// FailedToParse (9) for its form, 5339900 for ends in the wrong order, 5339901, 5339902 and 8947401 for a sort that does
/// not fit.
pub fn parse(v: &Value, sort: Option<&Document>) -> Result<Frame> {
    let Value::Document(d) = v else { bail!(FAILED_TO_PARSE, "'window' field must be an object") };
    for (name, _) in d.iter() {
        if !["documents", "range", "unit"].contains(&name) {
            bail!(
                FAILED_TO_PARSE,
                "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field"
            );
        }
    }
    let frame = match (d.get("documents"), d.get("range"), d.get("unit")) {
        (None, None, None) => Frame::WHOLE,
        (Some(documents), None, None) => {
            let (lower, upper) = bounds("documents", documents, position_bound)?;
            check_order(&lower, &upper, |a, b| a.cmp(b))?;
            Frame::Documents(lower, upper)
        }
        (None, Some(range), unit) => {
            let (lower, upper) = bounds("range", range, value_bound)?;
            check_order(&lower, &upper, compare_values)?;
            let unit = unit.map(parse_unit).transpose()?;
            if unit.is_some() {
                whole_number(&lower)?;
                whole_number(&upper)?;
            }
            Frame::Range(lower, upper, unit)
        }
        (None, None, Some(_)) => {
            bail!(FAILED_TO_PARSE, "Window bounds can only specify 'unit' with range-based bounds.")
        }
        _ => bail!(
            FAILED_TO_PARSE,
            "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field"
        ),
    };
    check_sort(&frame, sort)?;
    Ok(frame)
}

fn check_sort(frame: &Frame, sort: Option<&Document>) -> Result<()> {
    match (frame, sort) {
        (frame @ Frame::Documents(..), None) if !frame.is_whole() => {
            bail!(5339901, "Document-based bounds require a sortBy")
        }
        (Frame::Documents(..), _) => Ok(()),
        (Frame::Range(..), sort) => {
            let Some((_, order)) = sort.filter(|s| s.len() == 1).and_then(Document::first) else {
                bail!(5339902, "Range-based bounds require sortBy a single field");
            };
            if number::as_f64(order) != Some(1.0) {
                bail!(8947401, "Range-based bounds require a non-compound, ascending 'sortBy'");
            }
            Ok(())
        }
    }
}

fn bounds<T>(
    name: &str,
    v: &Value,
    parse: impl Fn(&str, &Value) -> Result<Bound<T>>,
) -> Result<(Bound<T>, Bound<T>)> {
    match v {
        Value::Array(items) if items.len() == 2 => Ok((parse(name, &items[0])?, parse(name, &items[1])?)),
        v => bail!(
            FAILED_TO_PARSE,
            "Window bounds must be a 2-element array: {name}: {}",
            crate::expression::parse::show(v)
        ),
    }
}

fn keyword<T>(v: &Value) -> Result<Option<Bound<T>>> {
    match v {
        Value::String(s) if s == "unbounded" => Ok(Some(Bound::Unbounded)),
        Value::String(s) if s == "current" => Ok(Some(Bound::Current)),
        Value::String(s) => {
            bail!(FAILED_TO_PARSE, "Window bounds must be 'unbounded', 'current', or a number: \"{s}\"")
        }
        _ => Ok(None),
    }
}

fn position_bound(_: &str, v: &Value) -> Result<Bound<i64>> {
    if let Some(bound) = keyword(v)? {
        return Ok(bound);
    }
    match v.is_number().then(|| crate::expression::number::exact_i32(v)).flatten() {
        Some(n) => Ok(Bound::At(i64::from(n))),
        None => bail!(
            FAILED_TO_PARSE,
            "Numeric document-based bounds must be an integer: {}",
            crate::expression::parse::show(v)
        ),
    }
}

fn value_bound(_: &str, v: &Value) -> Result<Bound<Value>> {
    if let Some(bound) = keyword(v)? {
        return Ok(bound);
    }
    match v.is_number() {
        true => Ok(Bound::At(v.clone())),
        false => bail!(
            FAILED_TO_PARSE,
            "Range-based bounds expression must be a number: {}",
            crate::expression::parse::show(v)
        ),
    }
}

fn whole_number(bound: &Bound<Value>) -> Result<()> {
    match bound {
        Bound::At(v) if number::to_i64_exact(v).is_none() => {
            bail!(FAILED_TO_PARSE, "With 'unit', range-based bounds must be an integer")
        }
        _ => Ok(()),
    }
}

/// Reads the name of a unit of time.
pub fn parse_unit(v: &Value) -> Result<Unit> {
    match v {
        Value::String(s) => Unit::parse(s),
        v => bail!(FAILED_TO_PARSE, "'unit' must be a string, but it is {}", v.type_name()),
    }
}

fn check_order<T>(lower: &Bound<T>, upper: &Bound<T>, compare: impl Fn(&T, &T) -> Ordering) -> Result<()>
where
    T: Sign,
{
    let wrong = match (lower, upper) {
        (Bound::At(a), Bound::At(b)) => compare(a, b).is_gt(),
        (Bound::Current, Bound::At(b)) => b.is_negative(),
        (Bound::At(a), Bound::Current) => a.is_positive(),
        _ => false,
    };
    if wrong {
        bail!(5339900, "Lower bound must not exceed upper bound");
    }
    Ok(())
}

/// On which side of the document at hand a bound lies.
trait Sign {
    fn is_negative(&self) -> bool;
    fn is_positive(&self) -> bool;
}
impl Sign for i64 {
    fn is_negative(&self) -> bool {
        *self < 0
    }
    fn is_positive(&self) -> bool {
        *self > 0
    }
}
impl Sign for Value {
    fn is_negative(&self) -> bool {
        number::as_f64(self).is_some_and(|x| x < 0.0)
    }
    fn is_positive(&self) -> bool {
        number::as_f64(self).is_some_and(|x| x > 0.0)
    }
}
