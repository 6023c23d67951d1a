//! `$derivative` and `$integral`: how the input changes along the sort field, and the area under it.

use crate::expression::date::Unit;
use crate::expression::{Arg, Expression};
use document::{Result, Value, bail, meter, number};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Derivative,
    Integral,
}

#[derive(Clone, Debug)]
pub(super) struct Rate {
    pub name: &'static str,
    pub kind: Kind,
    pub input: Expression,
    /// The unit that the sort field, a date, is measured in.
    pub unit: Option<Unit>,
}

/// Units of fixed length only.
pub(super) fn parse_unit(name: &str, v: &Value) -> Result<Unit> {
    let unit = super::frame::parse_unit(v)?;
    match unit {
        Unit::Year | Unit::Quarter | Unit::Month => {
            bail!(5490704, "unit must be 'week' or smaller in {name}")
        }
        unit => Ok(unit),
    }
}

impl Rate {
    /// The result over one frame: the input's values and those of the sort field.
    pub(super) fn over(&self, values: &[Arg], keys: &[Value]) -> Result<Arg> {
        match self.kind {
            Kind::Derivative => self.derivative(values, keys),
            Kind::Integral => self.integral(values, keys),
        }
    }

    /// From the first document of the frame to the last; null where they are one, or no numbers.
    fn derivative(&self, values: &[Arg], keys: &[Value]) -> Result<Arg> {
        let null = Ok(Some(Value::Null));
        if values.len() < 2 {
            return null;
        }
        let last = values.len() - 1;
        let (from, to) = (self.position(&keys[0])?, self.position(&keys[last])?);
        let ends = (values[0].as_ref(), values[last].as_ref());
        let (Some(first), Some(end)) = ends else { return null };
        let (Some(run), Some(rise)) = (number::subtract(&to, &from), number::subtract(end, first)) else {
            return null;
        };
        if number::as_f64(&run).is_none_or(|r| r == 0.0) {
            return null;
        }
        // The unit scales the quotient once, which keeps whole rates whole.
        let rate = number::divide(&rise, &run).and_then(|rate| match self.unit {
            Some(unit) => number::multiply(&rate, &Value::Double(unit.ms() as f64)),
            None => Some(rate),
        });
        Ok(Some(rate.unwrap_or(Value::Null)))
    }

    /// The sum of the trapezoids between neighbours; what is no number is passed over.
    fn integral(&self, values: &[Arg], keys: &[Value]) -> Result<Arg> {
        let mut before: Option<(Value, &Value)> = None;
        let mut area: Option<Value> = None;
        for (v, key) in values.iter().zip(keys) {
            meter::spend(4)?;
            let position = self.position(key)?;
            let Some(v) = v.as_ref().filter(|v| v.is_number()) else { continue };
            let piece = before.as_ref().and_then(|(at, height)| {
                let width = number::subtract(&position, at)?;
                number::divide(&number::multiply(&number::add(height, v)?, &width)?, &Value::Double(2.0))
            });
            area = match (area, piece) {
                (Some(area), Some(piece)) => number::add(&area, &piece),
                (None, piece) => Some(piece.unwrap_or(Value::Double(0.0))),
                (area, None) => area,
            };
            before = Some((position, v));
        }
        let Some(area) = area else { return Ok(Some(Value::Null)) };
        let scaled = match self.unit {
            Some(unit) => number::divide(&area, &Value::Double(unit.ms() as f64)),
            None => Some(area),
        };
        Ok(Some(scaled.unwrap_or(Value::Null)))
    }

    /// Where a document stands: milliseconds with a unit, else the number itself.
    fn position(&self, key: &Value) -> Result<Value> {
        match (self.unit, key) {
            (Some(_), Value::DateTime(ms)) => Ok(Value::Int64(*ms)),
            (Some(_), _) => {
                bail!(5624900, "{} with 'unit' expects the sortBy field to be a Date", self.name)
            }
            (None, Value::DateTime(_)) => {
                bail!(5624901, "{} where the sortBy is a Date requires a 'unit'", self.name)
            }
            (None, v) if v.is_number() => Ok(v.clone()),
            (None, _) => bail!(5624902, "{} expects the sortBy field to be numeric", self.name),
        }
    }
}
