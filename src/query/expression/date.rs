//! Date operators. Every one takes an optional time zone; a nullish date or zone gives null.

use super::date_format::{
    self, Civil, DAY, HOUR, MINUTE, SECOND, UTC, Zone, days_from_civil, days_in_month, moment,
};
use super::{Arg, Eval, Expression, Node, Variables, Vars, is_nullish, parse, type_name};
use document::{Doc, Document, Error, Result, Value, bail};
use std::sync::Arc;

fn null() -> Eval {
    Ok(Some(Value::Null))
}
fn show(v: &Arg) -> String {
    v.as_ref().map_or("missing".to_string(), parse::show)
}
fn int(i: i64) -> Value {
    document::number::int_or_long(i)
}

/// The zone of an optional argument: `None` when it is nullish, UTC when it was not given.
fn zone(e: &Option<Expression>, root: Doc<'_>, vars: &mut Vars) -> Result<Option<Zone>> {
    let Some(e) = e else { return Ok(Some(UTC)) };
    match e.eval(root, vars)? {
        v if is_nullish(&v) => Ok(None),
        Some(Value::String(s)) => Zone::parse(&s).map(Some),
        v => bail!(40517, "timezone must evaluate to a string, found {}", type_name(&v)),
    }
}

fn to_moment(v: &Arg) -> Result<i64> {
    match v.as_ref().and_then(moment) {
        Some(ms) => Ok(ms),
        None => bail!(16006, "can't convert from BSON type {} to Date", type_name(v)),
    }
}

fn optional(d: &Document, name: &str, vars: &Variables) -> Result<Option<Expression>> {
    d.get(name).map(|v| parse::expression(v, vars)).transpose()
}

fn children<'a>(parts: &[&'a Expression], optional: &[&'a Option<Expression>]) -> Vec<&'a Expression> {
    parts.iter().copied().chain(optional.iter().filter_map(|o| o.as_ref())).collect()
}

/// `$year`, `$month`, ...: one number of a date.
#[derive(Debug)]
struct Part {
    name: &'static str,
    date: Expression,
    timezone: Option<Expression>,
}

impl Node for Part {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let date = self.date.eval(root, vars)?;
        if is_nullish(&date) {
            return null();
        }
        let Some(zone) = zone(&self.timezone, root, vars)? else { return null() };
        let c = Civil::from_ms(zone.to_local(to_moment(&date)?));
        Ok(Some(match self.name {
            "$year" => int(c.year),
            "$month" => int(c.month),
            "$dayOfMonth" => int(c.day),
            "$dayOfWeek" => int(c.weekday() + 1),
            "$dayOfYear" => int(c.day_of_year()),
            "$hour" => int(c.hour),
            "$minute" => int(c.minute),
            "$second" => int(c.second),
            "$millisecond" => int(c.millisecond),
            "$week" => int(c.week()),
            "$isoWeek" => int(c.iso_week_year().1),
            "$isoWeekYear" => Value::Int64(c.iso_week_year().0),
            _ => int(c.iso_weekday()),
        }))
    }
    fn children(&self) -> Vec<&Expression> {
        children(&[&self.date], &[&self.timezone])
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

pub fn part(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let (date, timezone) = match v {
        Value::Document(d) if !d.first().is_some_and(|(k, _)| k.starts_with('$')) => {
            if let Some(bad) = d.keys().find(|k| !["date", "timezone"].contains(k)) {
                bail!(40535, "unrecognized option to {name}: \"{bad}\"");
            }
            let Some(date) = optional(d, "date", vars)? else {
                bail!(40539, "missing 'date' argument to {name}, provided: {}", parse::show(v));
            };
            (date, optional(d, "timezone", vars)?)
        }
        Value::Array(items) => match items.as_slice() {
            [one] => (parse::expression(one, vars)?, None),
            more => bail!(
                40536,
                "{name} accepts exactly one argument if given an array, but was given {}",
                more.len()
            ),
        },
        other => (parse::expression(other, vars)?, None),
    };
    Ok(Expression::Special(Arc::new(Part { name, date, timezone })))
}

#[derive(Debug)]
struct ToString {
    date: Expression,
    format: Option<Expression>,
    timezone: Option<Expression>,
    on_null: Option<Expression>,
}

impl Node for ToString {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let date = self.date.eval(root, vars)?;
        let otherwise = |vars: &mut Vars| match &self.on_null {
            Some(e) => e.eval(root, vars),
            None => null(),
        };
        let format = match &self.format {
            None => None,
            Some(e) => match e.eval(root, vars)? {
                v if is_nullish(&v) => return otherwise(vars),
                Some(Value::String(s)) => {
                    date_format::check_format(&s, false)?;
                    Some(s)
                }
                v => bail!(
                    18533,
                    "$dateToString requires that 'format' be a string, found: {} with value {}",
                    type_name(&v),
                    show(&v)
                ),
            },
        };
        if is_nullish(&date) {
            return otherwise(vars);
        }
        let Some(zone) = zone(&self.timezone, root, vars)? else { return otherwise(vars) };
        let default = if zone.is_utc() { "%Y-%m-%dT%H:%M:%S.%LZ" } else { "%Y-%m-%dT%H:%M:%S.%L" };
        let text = date_format::format(format.as_deref().unwrap_or(default), to_moment(&date)?, zone)?;
        Ok(Some(Value::String(text)))
    }
    fn children(&self) -> Vec<&Expression> {
        children(&[&self.date], &[&self.format, &self.timezone, &self.on_null])
    }
    fn name(&self) -> &'static str {
        "$dateToString"
    }
}

pub fn to_string(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else { bail!(18629, "$dateToString only supports an object as its argument") };
    if let Some(bad) = d.keys().find(|k| !["date", "format", "timezone", "onNull"].contains(k)) {
        bail!(18534, "Unrecognized parameter to $dateToString: {bad}");
    }
    let Some(date) = optional(d, "date", vars)? else {
        bail!(18628, "Missing 'date' parameter to $dateToString")
    };
    let format = optional(d, "format", vars)?;
    if let Some(v) = format.as_ref().and_then(Expression::as_constant) {
        match v {
            Value::String(s) => date_format::check_format(s, false)?,
            Value::Null | Value::Undefined => {}
            v => bail!(
                18533,
                "$dateToString requires that 'format' be a string, found: {} with value {}",
                v.type_name(),
                parse::show(v)
            ),
        }
    }
    let (timezone, on_null) = (optional(d, "timezone", vars)?, optional(d, "onNull", vars)?);
    Ok(Expression::Special(Arc::new(ToString { date, format, timezone, on_null })))
}

#[derive(Debug)]
struct FromString {
    text: Expression,
    format: Option<Expression>,
    timezone: Option<Expression>,
    on_null: Option<Expression>,
    on_error: Option<Expression>,
}

impl FromString {
    fn read(&self, root: Doc<'_>, vars: &mut Vars) -> Result<Option<Value>> {
        let text = self.text.eval(root, vars)?;
        let zone = match &self.timezone {
            None => None,
            Some(_) => match zone(&self.timezone, root, vars)? {
                None => return Ok(Some(Value::Null)),
                some => some,
            },
        };
        let format = match &self.format {
            None => None,
            Some(e) => match e.eval(root, vars)? {
                v if is_nullish(&v) => return Ok(Some(Value::Null)),
                Some(Value::String(s)) => {
                    date_format::check_format(&s, true)?;
                    Some(s)
                }
                v => bail!(
                    40684,
                    "$dateFromString requires that 'format' be a string, found: {} with value {}",
                    type_name(&v),
                    show(&v)
                ),
            },
        };
        if is_nullish(&text) {
            return match &self.on_null {
                Some(e) => e.eval(root, vars),
                None => Ok(Some(Value::Null)),
            };
        }
        let Some(Value::String(text)) = &text else {
            bail!(
                CONVERSION_FAILURE,
                "$dateFromString requires that 'dateString' be a string, found: {} with value {}",
                type_name(&text),
                show(&text)
            );
        };
        let ms = match format {
            Some(f) => date_format::parse_with(&f, text, zone)?,
            None => date_format::parse(text, zone)?,
        };
        Ok(Some(Value::DateTime(ms)))
    }
}

impl Node for FromString {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        match (self.read(root, vars), &self.on_error) {
            (Err(e), Some(otherwise)) if e.code == document::codes::CONVERSION_FAILURE => {
                otherwise.eval(root, vars)
            }
            (result, _) => result,
        }
    }
    fn children(&self) -> Vec<&Expression> {
        children(&[&self.text], &[&self.format, &self.timezone, &self.on_null, &self.on_error])
    }
    fn name(&self) -> &'static str {
        "$dateFromString"
    }
}

pub fn from_string(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(40540, "$dateFromString only supports an object as an argument, found: {}", v.type_name());
    };
    if let Some(bad) =
        d.keys().find(|k| !["dateString", "format", "timezone", "onNull", "onError"].contains(k))
    {
        bail!(40541, "Unrecognized argument to $dateFromString: {bad}");
    }
    let Some(text) = optional(d, "dateString", vars)? else {
        bail!(40542, "Missing 'dateString' parameter to $dateFromString");
    };
    let format = optional(d, "format", vars)?;
    if let Some(Value::String(s)) = format.as_ref().and_then(Expression::as_constant) {
        date_format::check_format(s, true)?;
    }
    Ok(Expression::Special(Arc::new(FromString {
        text,
        format,
        timezone: optional(d, "timezone", vars)?,
        on_null: optional(d, "onNull", vars)?,
        on_error: optional(d, "onError", vars)?,
    })))
}

#[derive(Debug)]
struct ToParts {
    date: Expression,
    timezone: Option<Expression>,
    iso: Option<Expression>,
}

impl Node for ToParts {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let date = self.date.eval(root, vars)?;
        if is_nullish(&date) {
            return null();
        }
        let Some(zone) = zone(&self.timezone, root, vars)? else { return null() };
        let iso = match &self.iso {
            None => false,
            Some(e) => match e.eval(root, vars)? {
                v if is_nullish(&v) => return null(),
                Some(Value::Boolean(b)) => b,
                v => bail!(40521, "iso8601 must evaluate to a bool, found {}", type_name(&v)),
            },
        };
        let c = Civil::from_ms(zone.to_local(to_moment(&date)?));
        let (iso_year, iso_week) = c.iso_week_year();
        let head = if iso {
            [("isoWeekYear", iso_year), ("isoWeek", iso_week), ("isoDayOfWeek", c.iso_weekday())]
        } else {
            [("year", c.year), ("month", c.month), ("day", c.day)]
        };
        let time =
            [("hour", c.hour), ("minute", c.minute), ("second", c.second), ("millisecond", c.millisecond)];
        let fields = head.into_iter().chain(time).map(|(k, v)| (k.to_string(), int(v)));
        Ok(Some(Value::Document(fields.collect())))
    }
    fn children(&self) -> Vec<&Expression> {
        children(&[&self.date], &[&self.timezone, &self.iso])
    }
    fn name(&self) -> &'static str {
        "$dateToParts"
    }
}

pub fn to_parts(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else { bail!(40524, "$dateToParts only supports an object as its argument") };
    if let Some(bad) = d.keys().find(|k| !["date", "timezone", "iso8601"].contains(k)) {
        bail!(40520, "Unrecognized parameter to $dateToParts: {bad}");
    }
    let Some(date) = optional(d, "date", vars)? else {
        bail!(40522, "Missing 'date' parameter to $dateToParts")
    };
    let (timezone, iso) = (optional(d, "timezone", vars)?, optional(d, "iso8601", vars)?);
    Ok(Expression::Special(Arc::new(ToParts { date, timezone, iso })))
}

/// The members of `$dateFromParts` before the time zone, with their defaults.
const FROM_PARTS: [(&str, i64); 10] = [
    ("year", 0),
    ("isoWeekYear", 0),
    ("month", 1),
    ("isoWeek", 1),
    ("day", 1),
    ("isoDayOfWeek", 1),
    ("hour", 0),
    ("minute", 0),
    ("second", 0),
    ("millisecond", 0),
];

#[derive(Debug)]
struct FromParts {
    parts: Vec<Option<Expression>>,
    timezone: Option<Expression>,
}

impl Node for FromParts {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let mut values = [0i64; 10];
        for (i, (name, default)) in FROM_PARTS.iter().enumerate() {
            values[i] = match &self.parts[i] {
                None => *default,
                Some(e) => match e.eval(root, vars)? {
                    v if is_nullish(&v) => return null(),
                    v => check_part(name, &v)?,
                },
            };
        }
        let Some(zone) = zone(&self.timezone, root, vars)? else { return null() };
        let [year, iso_year, month, week, day, weekday, hour, minute, second, ms] = values;
        let days = if self.parts[1].is_some() {
            date_format::days_from_iso(iso_year, week, weekday)
        } else {
            days_from_civil(year, month, day)
        };
        if ms.checked_mul(1000).is_none() {
            bail!(
                DURATION_OVERFLOW,
                "Overflow casting from a lower-precision duration to a higher-precision duration"
            );
        }
        let time = second.checked_mul(SECOND).and_then(|s| s.checked_add(ms));
        let local = time.and_then(|t| t.checked_add(days * DAY + hour * HOUR + minute * MINUTE));
        match local {
            Some(local) => Ok(Some(Value::DateTime(zone.to_utc(local)))),
            None => bail!(5976501, "$dateFromParts does not support the given values: overflow"),
        }
    }
    fn children(&self) -> Vec<&Expression> {
        self.parts.iter().flatten().chain(&self.timezone).collect()
    }
    fn name(&self) -> &'static str {
        "$dateFromParts"
    }
}

fn check_part(name: &str, v: &Arg) -> Result<i64> {
    let Some(n) = v.as_ref().and_then(document::number::to_i64_exact) else {
        bail!(40515, "'{name}' must evaluate to an integer, found {} with value {}", type_name(v), show(v));
    };
    let (least, greatest, code) = match name {
        "year" => (1, 9999, 40523),
        "isoWeekYear" => (1, 9999, 31095),
        "second" | "millisecond" => return Ok(n),
        _ => (-32768, 32767, 31034),
    };
    if !(least..=greatest).contains(&n) {
        let text = if code == 31034 {
            format!(
                "'{name}' must evaluate to a value in the range [-32768, 32767]; value {n} is not in range"
            )
        } else {
            format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {n}")
        };
        return Err(Error::new(code, text));
    }
    Ok(n)
}

pub fn from_parts(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(40519, "$dateFromParts only supports an object as its argument")
    };
    let known = |k: &&str| *k == "timezone" || FROM_PARTS.iter().any(|(n, _)| n == k);
    if let Some(bad) = d.keys().find(|k| !known(k)) {
        bail!(40518, "Unrecognized parameter to $dateFromParts: {bad}");
    }
    if !d.contains_key("year") && !d.contains_key("isoWeekYear") {
        bail!(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present");
    }
    if d.contains_key("year") && ["isoWeekYear", "isoWeek", "isoDayOfWeek"].iter().any(|k| d.contains_key(k))
    {
        bail!(40489, "$dateFromParts does not allow mixing natural dates with ISO dates");
    }
    if d.contains_key("isoWeekYear") && ["month", "day"].iter().any(|k| d.contains_key(k)) {
        bail!(40525, "$dateFromParts does not allow mixing ISO dates with natural dates");
    }
    let parts = FROM_PARTS.iter().map(|(name, _)| optional(d, name, vars)).collect::<Result<Vec<_>>>()?;
    Ok(Expression::Special(Arc::new(FromParts { parts, timezone: optional(d, "timezone", vars)? })))
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    pub fn parse(text: &str) -> Result<Unit> {
        Ok(match text {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            other => bail!(FAILED_TO_PARSE, "unknown time unit value: {other}"),
        })
    }
    /// Months of the units that are counted in months.
    fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }
    /// Milliseconds of the others.
    pub fn ms(self) -> i64 {
        match self {
            Unit::Week => 7 * DAY,
            Unit::Day => DAY,
            Unit::Hour => HOUR,
            Unit::Minute => MINUTE,
            Unit::Second => SECOND,
            _ => 1,
        }
    }
}

fn unit(name: &str, e: &Expression, root: Doc<'_>, vars: &mut Vars) -> Result<Option<Unit>> {
    match e.eval(root, vars)? {
        v if is_nullish(&v) => Ok(None),
        Some(Value::String(s)) => Unit::parse(&s).map(Some),
        v => bail!(5439013, "{name} requires 'unit' to be a string, but got {}", type_name(&v)),
    }
}

/// Moves a moment by whole units in a zone: days and longer keep the local time of day.
pub fn shift(ms: i64, unit: Unit, amount: i64, zone: Zone) -> Option<i64> {
    if let Some(months) = unit.months() {
        let local = zone.to_local(ms);
        let c = Civil::from_ms(local);
        let total = amount.checked_mul(months)?.checked_add(c.year * 12 + c.month - 1)?;
        if total.abs() > 12 * 300_000_000 {
            return None;
        }
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        let day = c.day.min(days_in_month(year, month));
        let out = days_from_civil(year, month, day).checked_mul(DAY)?.checked_add(local.rem_euclid(DAY))?;
        return Some(zone.to_utc(out));
    }
    let by = amount.checked_mul(unit.ms())?;
    if matches!(unit, Unit::Week | Unit::Day) && !matches!(zone, Zone::Fixed(_)) {
        return zone.to_local(ms).checked_add(by).map(|local| zone.to_utc(local));
    }
    ms.checked_add(by)
}

#[derive(Debug)]
struct Add {
    name: &'static str,
    start: Expression,
    unit: Expression,
    amount: Expression,
    timezone: Option<Expression>,
}

impl Node for Add {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let name = self.name;
        let start = self.start.eval(root, vars)?;
        if is_nullish(&start) {
            return null();
        }
        let Some(unit) = unit(name, &self.unit, root, vars)? else { return null() };
        let amount = self.amount.eval(root, vars)?;
        if is_nullish(&amount) {
            return null();
        }
        let Some(zone) = zone(&self.timezone, root, vars)? else { return null() };
        let Some(ms) = start.as_ref().and_then(moment) else {
            bail!(5166403, "{name} requires startDate to be convertible to a date");
        };
        let Some(amount) = amount.as_ref().and_then(document::number::to_i64_exact) else {
            bail!(5166405, "{name} expects integer amount of time units");
        };
        let amount = if name == "$dateSubtract" {
            match amount.checked_neg() {
                Some(n) => n,
                None => bail!(6045000, "invalid $dateSubtract 'amount' parameter value: {amount}"),
            }
        } else {
            amount
        };
        let scaled = unit.months().map_or_else(|| amount.checked_mul(unit.ms()), |m| amount.checked_mul(m));
        if scaled.is_none() || unit.months().is_some() && scaled.is_some_and(|m| m.abs() > 12 * 584_000_000) {
            bail!(5976500, "invalid {name} 'amount' parameter value: {amount}");
        }
        match shift(ms, unit, amount, zone) {
            Some(ms) => Ok(Some(Value::DateTime(ms))),
            None => bail!(5166406, "{name} overflowed"),
        }
    }
    fn children(&self) -> Vec<&Expression> {
        children(&[&self.start, &self.unit, &self.amount], &[&self.timezone])
    }
    fn name(&self) -> &'static str {
        self.name
    }
}

pub fn add(name: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else {
        bail!(5166400, "{name} expects an object as its argument.found input type:{}", v.type_name());
    };
    if let Some(bad) = d.keys().find(|k| !["startDate", "unit", "amount", "timezone"].contains(k)) {
        bail!(
            5166401,
            "Unrecognized argument to {name}: {bad}. Expected arguments are startDate, unit, amount, and optionally timezone"
        );
    }
    let (Some(start), Some(unit), Some(amount)) =
        (optional(d, "startDate", vars)?, optional(d, "unit", vars)?, optional(d, "amount", vars)?)
    else {
        bail!(5166402, "{name} requires startDate, unit, and amount to be present");
    };
    let timezone = optional(d, "timezone", vars)?;
    Ok(Expression::Special(Arc::new(Add { name, start, unit, amount, timezone })))
}

/// 0 is Sunday.
fn start_of_week(name: &str, e: &Option<Expression>, root: Doc<'_>, vars: &mut Vars) -> Result<Option<i64>> {
    let Some(e) = e else { return Ok(Some(0)) };
    let v = e.eval(root, vars)?;
    if is_nullish(&v) {
        return Ok(None);
    }
    let Some(Value::String(s)) = &v else {
        bail!(5439015, "{name} requires 'startOfWeek' to be a string, but got {}", type_name(&v));
    };
    let names = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let lower = s.to_ascii_lowercase();
    match names.iter().position(|n| *n == lower || (lower.len() == 3 && n.starts_with(&lower))) {
        Some(i) => Ok(Some(i as i64)),
        None => bail!(
            5439016,
            "{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {s}"
        ),
    }
}

#[derive(Debug)]
struct Diff {
    start: Expression,
    end: Expression,
    unit: Expression,
    timezone: Option<Expression>,
    week: Option<Expression>,
}

impl Node for Diff {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let start = self.start.eval(root, vars)?;
        if is_nullish(&start) {
            return null();
        }
        let end = self.end.eval(root, vars)?;
        if is_nullish(&end) {
            return null();
        }
        let Some(unit) = unit("$dateDiff", &self.unit, root, vars)? else { return null() };
        let week = match unit {
            Unit::Week => match start_of_week("$dateDiff", &self.week, root, vars)? {
                None => return null(),
                Some(w) => w,
            },
            _ => 0,
        };
        let Some(zone) = zone(&self.timezone, root, vars)? else { return null() };
        let date = |v: &Arg, which: &str| match v.as_ref().and_then(moment) {
            Some(ms) => Ok(ms),
            None => bail!(5166307, "$dateDiff requires '{which}' to be a date, but got {}", type_name(v)),
        };
        let (a, b) = (date(&start, "startDate")?, date(&end, "endDate")?);
        Ok(Some(Value::Int64(count_boundaries(a, b, unit, zone, week))))
    }
    fn children(&self) -> Vec<&Expression> {
        children(&[&self.start, &self.end, &self.unit], &[&self.timezone, &self.week])
    }
    fn name(&self) -> &'static str {
        "$dateDiff"
    }
}

/// How many boundaries of the unit lie between two moments.
fn count_boundaries(a: i64, b: i64, unit: Unit, zone: Zone, week: i64) -> i64 {
    let (x, y) = (Civil::from_ms(zone.to_local(a)), Civil::from_ms(zone.to_local(b)));
    match unit {
        Unit::Year => y.year - x.year,
        Unit::Quarter => (y.year * 4 + (y.month - 1) / 3) - (x.year * 4 + (x.month - 1) / 3),
        Unit::Month => (y.year * 12 + y.month) - (x.year * 12 + x.month),
        Unit::Week => (y.days + 4 - week).div_euclid(7) - (x.days + 4 - week).div_euclid(7),
        Unit::Day => y.days - x.days,
        // Shorter units are counted in elapsed time, from boundaries that the zone's offset displaces.
        unit => {
            let (size, displaced) = (unit.ms(), zone.offset_ms(a).rem_euclid(unit.ms()));
            let floor = |ms: i64| ms.saturating_add(displaced).div_euclid(size);
            floor(b).saturating_sub(floor(a))
        }
    }
}

pub fn diff(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else { bail!(5166301, "$dateDiff only supports an object as its argument") };
    let known = ["startDate", "endDate", "unit", "timezone", "startOfWeek"];
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(5166302, "Unrecognized argument to $dateDiff: {bad}");
    }
    let Some(start) = optional(d, "startDate", vars)? else {
        bail!(5166303, "Missing 'startDate' parameter to $dateDiff");
    };
    let Some(end) = optional(d, "endDate", vars)? else {
        bail!(5166304, "Missing 'endDate' parameter to $dateDiff");
    };
    let Some(unit) = optional(d, "unit", vars)? else {
        bail!(5166305, "Missing 'unit' parameter to $dateDiff")
    };
    let (timezone, week) = (optional(d, "timezone", vars)?, optional(d, "startOfWeek", vars)?);
    Ok(Expression::Special(Arc::new(Diff { start, end, unit, timezone, week })))
}

#[derive(Debug)]
struct Trunc {
    date: Expression,
    unit: Expression,
    bin: Option<Expression>,
    timezone: Option<Expression>,
    week: Option<Expression>,
}

impl Node for Trunc {
    fn eval(&self, root: Doc<'_>, vars: &mut Vars) -> Eval {
        let date = self.date.eval(root, vars)?;
        if is_nullish(&date) {
            return null();
        }
        let bin = match &self.bin {
            None => Some(Value::Int32(1)),
            Some(e) => e.eval(root, vars)?,
        };
        if is_nullish(&bin) {
            return null();
        }
        let Some(unit) = unit("$dateTrunc", &self.unit, root, vars)? else { return null() };
        if unit != Unit::Week
            && let Some(e) = &self.week
            && is_nullish(&e.eval(root, vars)?)
        {
            return null();
        }
        let week = match unit {
            Unit::Week => match start_of_week("$dateTrunc", &self.week, root, vars)? {
                None => return null(),
                Some(w) => w,
            },
            _ => 0,
        };
        let Some(zone) = zone(&self.timezone, root, vars)? else { return null() };
        let Some(ms) = date.as_ref().and_then(moment) else {
            bail!(5166307, "$dateTrunc requires 'date' to be a date, but got {}", type_name(&date));
        };
        let Some(size) = bin.as_ref().and_then(document::number::to_i64_exact) else {
            bail!(
                5439017,
                "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}' of type {}",
                show(&bin),
                type_name(&bin)
            );
        };
        if size <= 0 {
            bail!(5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got value {size}");
        }
        truncate(ms, unit, size, zone, week).map(|ms| Some(Value::DateTime(ms)))
    }
    fn children(&self) -> Vec<&Expression> {
        children(&[&self.date, &self.unit], &[&self.bin, &self.timezone, &self.week])
    }
    fn name(&self) -> &'static str {
        "$dateTrunc"
    }
}

/// The start of the bin that holds the moment. Bins are counted from the local start of the year 2000; weeks from the
/// first start of a week in it.
fn truncate(ms: i64, unit: Unit, size: i64, zone: Zone, week: i64) -> Result<i64> {
    let overflow = |code: i32| move || Error::new(code, "$dateTrunc 'binSize' overflowed".to_string());
    let local = zone.to_local(ms);
    if let Some(months) = unit.months() {
        let bin =
            size.checked_mul(months).filter(|m| *m <= 100_000_000_000 * 12).ok_or_else(overflow(5439006))?;
        let c = Civil::from_ms(local);
        let since = (c.year - 2000) * 12 + c.month - 1;
        let start = since.div_euclid(bin) * bin;
        let days = days_from_civil(2000 + start.div_euclid(12), start.rem_euclid(12) + 1, 1);
        let at = days.checked_mul(DAY).ok_or_else(overflow(5439006))?;
        return Ok(zone.to_utc(at));
    }
    let bin = size.checked_mul(unit.ms()).ok_or_else(overflow(5439002))?;
    let reference = days_from_civil(2000, 1, 1);
    if matches!(unit, Unit::Week | Unit::Day) {
        // 1 January 2000 was a Saturday.
        let first = if unit == Unit::Week { reference + (week - 6).rem_euclid(7) } else { reference };
        let bin_days = bin / DAY;
        let days = local.div_euclid(DAY) - first;
        let start = first + days.div_euclid(bin_days) * bin_days;
        return start.checked_mul(DAY).map(|at| zone.to_utc(at)).ok_or_else(overflow(5439002));
    }
    let reference = zone.to_utc(reference * DAY);
    let since = ms.checked_sub(reference).ok_or_else(overflow(5439002))?;
    since
        .div_euclid(bin)
        .checked_mul(bin)
        .and_then(|b| b.checked_add(reference))
        .ok_or_else(overflow(5439002))
}

pub fn trunc(_: &'static str, v: &Value, vars: &Variables) -> Result<Expression> {
    let Value::Document(d) = v else { bail!(5439007, "$dateTrunc only supports an object as its argument") };
    let known = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(5439008, "Unrecognized argument to $dateTrunc: {bad}");
    }
    let Some(date) = optional(d, "date", vars)? else {
        bail!(5439009, "Missing 'date' parameter to $dateTrunc")
    };
    let Some(unit) = optional(d, "unit", vars)? else {
        bail!(5439010, "Missing 'unit' parameter to $dateTrunc")
    };
    let (bin, timezone) = (optional(d, "binSize", vars)?, optional(d, "timezone", vars)?);
    let week = optional(d, "startOfWeek", vars)?;
    Ok(Expression::Special(Arc::new(Trunc { date, unit, bin, timezone, week })))
}
