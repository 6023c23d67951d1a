//! Points of the calendar, time zones, and dates as text. Only the offset of a named zone is asked of the time zone database.

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
pub use document::calendar::{civil_from_days, days_from_civil};
use document::{Result, Value, bail, meter};

pub const SECOND: i64 = 1000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

pub fn days_in_month(year: i64, month: i64) -> i64 {
    days_from_civil(year, month + 1, 1) - days_from_civil(year, month, 1)
}

/// A point of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub millisecond: i64,
    /// Days since the epoch.
    pub days: i64,
}

impl Civil {
    /// Of local milliseconds.
    pub fn from_ms(ms: i64) -> Civil {
        let days = ms.div_euclid(DAY);
        let rest = ms.rem_euclid(DAY);
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            hour: rest / HOUR,
            minute: rest / MINUTE % 60,
            second: rest / SECOND % 60,
            millisecond: rest % SECOND,
            days,
        }
    }
    /// 0 is Sunday.
    pub fn weekday(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }
    /// 1 is Monday, 7 is Sunday.
    pub fn iso_weekday(&self) -> i64 {
        (self.days + 3).rem_euclid(7) + 1
    }
    pub fn day_of_year(&self) -> i64 {
        self.days - days_from_civil(self.year, 1, 1) + 1
    }
    /// Weeks start on Sunday; days before the first Sunday are week 0.
    pub fn week(&self) -> i64 {
        (self.day_of_year() + 6 - self.weekday()) / 7
    }
    pub fn iso_week_year(&self) -> (i64, i64) {
        let thursday = self.days - (self.iso_weekday() - 1) + 3;
        let (year, ..) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }
}

/// Days since the epoch of an ISO week date.
pub fn days_from_iso(year: i64, week: i64, weekday: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    let monday = fourth - (fourth + 3).rem_euclid(7);
    monday + (week - 1) * 7 + (weekday - 1)
}

/// A time zone: a fixed offset or a named one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Zone {
    /// Milliseconds east of UTC.
    Fixed(i64),
    Named(chrono_tz::Tz),
}

pub const UTC: Zone = Zone::Fixed(0);

impl Zone {
    /// `UTC`, `GMT`, `+hh`, `+hhmm`, `+hh:mm`, or a name of the time zone database.
    pub fn parse(text: &str) -> Result<Zone> {
        if matches!(text, "UTC" | "GMT") {
            return Ok(UTC);
        }
        if let Some(offset) = parse_offset(text) {
            return Ok(Zone::Fixed(offset));
        }
        match text.parse::<chrono_tz::Tz>() {
            Ok(tz) => Ok(Zone::Named(tz)),
            Err(_) => bail!(40485, "unrecognized time zone identifier: \"{text}\""),
        }
    }
    pub fn is_utc(&self) -> bool {
        *self == UTC
    }
    /// Milliseconds to add to UTC at that moment.
    pub fn offset_ms(&self, utc_ms: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(tz) => match naive(utc_ms) {
                Some(at) => tz.offset_from_utc_datetime(&at).fix().local_minus_utc() as i64 * SECOND,
                None => 0,
            },
        }
    }
    /// Local milliseconds of a moment.
    pub fn to_local(&self, utc_ms: i64) -> i64 {
        utc_ms.saturating_add(self.offset_ms(utc_ms))
    }
    /// The moment of a local time. A local time that never was is moved past the gap; of two moments the first.
    pub fn to_utc(&self, local_ms: i64) -> i64 {
        let Zone::Named(tz) = self else { return local_ms.saturating_sub(self.offset_ms(local_ms)) };
        let Some(at) = naive(local_ms) else { return local_ms };
        match tz.offset_from_local_datetime(&at).earliest() {
            Some(offset) => local_ms - offset.fix().local_minus_utc() as i64 * SECOND,
            None => local_ms - self.offset_ms(local_ms - DAY),
        }
    }
}

fn naive(ms: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_millis(ms).map(|d| d.naive_utc())
}

fn parse_offset(text: &str) -> Option<i64> {
    let (sign, body) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let digits: String = match body.len() {
        1 | 2 | 4 => body.to_string(),
        5 if body.as_bytes()[2] == b':' => format!("{}{}", &body[..2], &body[3..]),
        _ => return None,
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let n: i64 = digits.parse().ok()?;
    let (hours, minutes) = if digits.len() <= 2 { (n, 0) } else { (n / 100, n % 100) };
    Some(sign * (hours * HOUR + minutes * MINUTE))
}

/// `2024-01-02T03:04:05.006Z`.
pub fn iso(ms: i64) -> String {
    let c = Civil::from_ms(ms);
    let Civil { month, day, hour, minute, second, millisecond, .. } = c;
    let year = if (0..=9999).contains(&c.year) { format!("{:04}", c.year) } else { c.year.to_string() };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The English name of a month, 1 to 12.
pub fn month_name(month: i64) -> &'static str {
    MONTHS[(month - 1).clamp(0, 11) as usize]
}

/// Checks the specifiers of a format for writing (`$dateToString`) or reading (`$dateFromString`).
pub fn check_format(format: &str, reading: bool) -> Result<()> {
    let known = if reading { "dGHjLmMSuVYzZbB%" } else { "dGHjLmMSwuUVYzZbB%" };
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            continue;
        }
        match chars.next() {
            None => bail!(18535, "Unmatched '%' at end of format string"),
            Some(s) if known.contains(s) => {}
            Some(s) => bail!(18536, "Invalid format character '%{s}' in format string"),
        }
    }
    Ok(())
}

/// Writes a moment in a format.
pub fn format(format: &str, utc_ms: i64, zone: Zone) -> Result<String> {
    let offset = zone.offset_ms(utc_ms);
    let c = Civil::from_ms(utc_ms.saturating_add(offset));
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(ch) = chars.next() {
        if ch != '%' {
            out.push(ch);
            continue;
        }
        meter::spend(1)?;
        match chars.next() {
            Some('d') => out.push_str(&format!("{:02}", c.day)),
            Some('H') => out.push_str(&format!("{:02}", c.hour)),
            Some('j') => out.push_str(&format!("{:03}", c.day_of_year())),
            Some('L') => out.push_str(&format!("{:03}", c.millisecond)),
            Some('m') => out.push_str(&format!("{:02}", c.month)),
            Some('M') => out.push_str(&format!("{:02}", c.minute)),
            Some('S') => out.push_str(&format!("{:02}", c.second)),
            Some('w') => out.push_str(&(c.weekday() + 1).to_string()),
            Some('u') => out.push_str(&c.iso_weekday().to_string()),
            Some('U') => out.push_str(&format!("{:02}", c.week())),
            Some('V') => out.push_str(&format!("{:02}", c.iso_week_year().1)),
            Some('G') => out.push_str(&four_digits(c.iso_week_year().0)?),
            Some('Y') => out.push_str(&four_digits(c.year)?),
            Some('b') => out.push_str(&MONTHS[(c.month - 1) as usize][..3]),
            Some('B') => out.push_str(MONTHS[(c.month - 1) as usize]),
            Some('z') => {
                let (sign, m) = (if offset < 0 { '-' } else { '+' }, offset.abs() / MINUTE);
                out.push_str(&format!("{sign}{:02}{:02}", m / 60, m % 60));
            }
            Some('Z') => out.push_str(&(offset / MINUTE).to_string()),
            Some('%') => out.push('%'),
            Some(s) => bail!(18536, "Invalid format character '%{s}' in format string"),
            None => bail!(18535, "Unmatched '%' at end of format string"),
        }
    }
    Ok(out)
}

fn four_digits(year: i64) -> Result<String> {
    if !(0..=9999).contains(&year) {
        bail!(18537, "$dateToString is only defined on year 0-9999, tried to use year {year}");
    }
    Ok(format!("{year:04}"))
}

/// What was read of a text: the parts given, and an offset when the text had one.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso: (Option<i64>, Option<i64>, Option<i64>),
    time: [i64; 4],
    offset: Option<Zone>,
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
    /// Between `least` and `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let n = self.rest().bytes().take(most).take_while(u8::is_ascii_digit).count();
        if n < least {
            return None;
        }
        let v = self.rest()[..n].parse().ok();
        self.at += n;
        v
    }
    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }
    fn spaces(&mut self) {
        while self.eat(' ') || self.eat('\t') {}
    }
    /// Whether an hour and a colon follow.
    fn is_at_time(&self) -> bool {
        let hour = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        matches!(hour, 1 | 2) && self.rest()[hour..].starts_with(':')
    }
    fn word(&mut self) -> &'a str {
        let n = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let w = &self.rest()[..n];
        self.at += n;
        w
    }
    fn month_name(&mut self) -> Option<i64> {
        let before = self.at;
        let word = self.word();
        let found = MONTHS.iter().position(|m| {
            word.len() >= 3 && (word.eq_ignore_ascii_case(m) || word.eq_ignore_ascii_case(&m[..3]))
                || (word.eq_ignore_ascii_case("sept") && *m == "September")
        });
        if found.is_none() {
            self.at = before;
        }
        found.map(|m| m as i64 + 1)
    }
    fn fraction_ms(&mut self) -> Option<i64> {
        let n = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if n == 0 {
            return None;
        }
        let ms = format!("{:0<3}", &self.rest()[..n])[..3].parse().ok();
        self.at += n;
        ms
    }
    fn zone(&mut self) -> Option<Zone> {
        let rest = self.rest();
        if rest.starts_with(['+', '-']) {
            let n = 1 + rest[1..].bytes().take_while(|b| b.is_ascii_digit() || *b == b':').count();
            self.at += n;
            return parse_offset(&rest[..n]).map(Zone::Fixed);
        }
        let n = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"/_+-".contains(b)).count();
        self.at += n;
        let name = &rest[..n];
        match name.to_ascii_uppercase().as_str() {
            "" => None,
            "Z" | "UTC" | "GMT" => Some(UTC),
            "EST" => Some(Zone::Fixed(-5 * HOUR)),
            "EDT" => Some(Zone::Fixed(-4 * HOUR)),
            "PST" => Some(Zone::Fixed(-8 * HOUR)),
            "PDT" => Some(Zone::Fixed(-7 * HOUR)),
            // GMT+0330
            upper => {
                match upper.strip_prefix("GMT").or_else(|| upper.strip_prefix("UTC")).and_then(parse_offset) {
                    Some(offset) => Some(Zone::Fixed(offset)),
                    None => Zone::parse(name).ok(),
                }
            }
        }
    }
}

impl Read {
    fn resolve(&self, default: Option<Zone>, text: &str) -> Result<i64> {
        if self.offset.is_some() && default.is_some_and(|zone| !zone.is_utc()) {
            bail!(
                CONVERSION_FAILURE,
                "you cannot pass in a date/time string with GMT offset together with a timezone argument"
            );
        }
        let [hour, minute, second, ms] = self.time;
        if hour > 23 || minute > 59 || second > 59 {
            bail!(
                CONVERSION_FAILURE,
                "an incomplete date/time string has been found, with elements missing: \"{text}\""
            );
        }
        let days = match (self.iso, self.year, self.day_of_year) {
            ((Some(y), w, d), ..) => days_from_iso(y, w.unwrap_or(1), d.unwrap_or(1)),
            (_, Some(y), Some(n)) => days_from_civil(y, 1, 1) + n,
            (_, Some(y), None) => {
                let (m, d) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
                if !(1..=12).contains(&m) || !(1..=days_in_month(y, m)).contains(&d) {
                    bail!(
                        CONVERSION_FAILURE,
                        "Error parsing date string '{text}'; The parsed date was invalid"
                    );
                }
                days_from_civil(y, m, d)
            }
            _ => bail!(
                CONVERSION_FAILURE,
                "an incomplete date/time string has been found, with elements missing: \"{text}\""
            ),
        };
        let local = days * DAY + hour * HOUR + minute * MINUTE + second * SECOND + ms;
        Ok(self.offset.or(default).unwrap_or(UTC).to_utc(local))
    }
}

/// Reads a date as people and machines commonly write it.
pub fn parse(text: &str, zone: Option<Zone>) -> Result<i64> {
    match read_free(text) {
        Some(read) => read.resolve(zone, text),
        None => bail!(
            CONVERSION_FAILURE,
            "Error parsing date string '{text}'; 0: Unexpected character '{}'",
            text.chars().next().unwrap_or(' ')
        ),
    }
}

fn read_free(text: &str) -> Option<Read> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
    let mut c = Cursor { text, at: 0 };
    let mut read = Read::default();
    read_date(&mut c, &mut read)?;
    if c.eat('T') || c.eat('t') || c.rest().starts_with([' ', '\t']) {
        c.spaces();
        if c.rest().starts_with(|x: char| x.is_ascii_digit()) {
            read_time(&mut c, &mut read)?;
        }
    }
    c.spaces();
    if !c.rest().is_empty() {
        read.offset = Some(c.zone()?);
    }
    c.rest().is_empty().then_some(read)
}

fn read_date(c: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    // Names of weekdays say nothing.
    let before = c.at;
    let word = c.word();
    if ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        .iter()
        .any(|d| word.to_ascii_lowercase().starts_with(d))
    {
        c.eat(',');
        c.spaces();
    } else {
        c.at = before;
    }
    if let Some(month) = c.month_name() {
        read.month = Some(month);
        return read_after_month(c, read);
    }
    let start = c.at;
    let first = c.digits(1, 8)?;
    let n = c.at - start;
    match n {
        8 => {
            read.year = Some(first / 10_000);
            read.month = Some(first / 100 % 100);
            read.day = Some(first % 100);
        }
        4 if c.eat('-') || c.eat('/') || c.eat('.') => {
            read.year = Some(first);
            if c.eat('W') {
                let week = c.digits(2, 2)?;
                c.eat('-');
                read.iso = (Some(first), Some(week), c.digits(1, 1).or(Some(1)));
                return Some(());
            }
            read.month = Some(match c.month_name() {
                Some(m) => m,
                None => c.digits(1, 2)?,
            });
            if c.eat('-') || c.eat('/') || c.eat('.') {
                read.day = Some(c.digits(1, 2)?);
            }
        }
        1 | 2 if c.eat('/') => {
            // American order.
            read.month = Some(first);
            read.day = Some(c.digits(1, 2)?);
            if c.eat('/') {
                read.year = Some(c.digits(4, 4)?);
            }
        }
        1 | 2 => {
            if !(c.eat('-') || c.eat('.')) {
                c.spaces();
            }
            read.day = Some(first);
            read.month = Some(match c.month_name() {
                Some(m) => m,
                None => c.digits(1, 2)?,
            });
            if !(c.eat('-') || c.eat('.')) {
                c.eat(',');
                c.spaces();
            }
            read.year = Some(c.digits(4, 4)?);
        }
        _ => return None,
    }
    Some(())
}

/// July 4, 2017 and Jul 4 2017; Jul 4 12:00:00 2017 with or without a zone, as C prints it.
fn read_after_month(c: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    c.eat('.');
    c.spaces();
    read.day = Some(c.digits(1, 2)?);
    let suffix = c.at;
    if !["st", "nd", "rd", "th"].contains(&c.word().to_ascii_lowercase().as_str()) {
        c.at = suffix;
    }
    c.eat(',');
    c.spaces();
    if c.is_at_time() {
        read_time(c, read)?;
        c.spaces();
        if !c.rest().starts_with(|x: char| x.is_ascii_digit()) {
            read.offset = Some(c.zone()?);
            c.spaces();
        }
    }
    read.year = Some(c.digits(4, 4)?);
    Some(())
}

fn read_time(c: &mut Cursor<'_>, read: &mut Read) -> Option<()> {
    read.time[0] = c.digits(1, 2)?;
    let compact = !c.rest().starts_with(':') && c.rest().starts_with(|x: char| x.is_ascii_digit());
    if c.eat(':') || compact {
        read.time[1] = c.digits(2, 2)?;
        if c.eat(':') || (compact && c.rest().starts_with(|x: char| x.is_ascii_digit())) {
            read.time[2] = c.digits(2, 2)?;
            if c.eat('.') || c.eat(',') {
                read.time[3] = c.fraction_ms()?;
            }
        }
    }
    let before = c.at;
    c.spaces();
    match c.word().to_ascii_lowercase().as_str() {
        "am" if read.time[0] == 12 => read.time[0] = 0,
        "am" => {}
        "pm" if read.time[0] < 12 => read.time[0] += 12,
        "pm" => {}
        _ => c.at = before,
    }
    Some(())
}

/// Reads a date in a given format.
pub fn parse_with(format: &str, text: &str, zone: Option<Zone>) -> Result<i64> {
    match read_with(format, text) {
        Some(read) => read.resolve(zone, text),
        None => bail!(
            CONVERSION_FAILURE,
            "Error parsing date string '{text}'; 0: Format literal not found '{}'",
            text.chars().next().unwrap_or(' ')
        ),
    }
}

fn read_with(format: &str, text: &str) -> Option<Read> {
    let mut c = Cursor { text, at: 0 };
    let mut read = Read::default();
    let mut chars = format.chars();
    while let Some(f) = chars.next() {
        if f != '%' {
            if !c.eat(f) {
                return None;
            }
            continue;
        }
        match chars.next()? {
            'd' => read.day = Some(c.digits(1, 2)?),
            'm' => read.month = Some(c.digits(1, 2)?),
            'Y' => read.year = Some(c.digits(4, 4)?),
            'j' => read.day_of_year = Some(c.digits(1, 3)?),
            'G' => read.iso.0 = Some(c.digits(4, 4)?),
            'V' => read.iso.1 = Some(c.digits(1, 2)?),
            'u' => read.iso.2 = Some(c.digits(1, 1)?),
            'H' => read.time[0] = c.digits(1, 2)?,
            'M' => read.time[1] = c.digits(1, 2)?,
            'S' => read.time[2] = c.digits(1, 2)?,
            'L' => {
                let start = c.at;
                let v = c.digits(1, 3)?;
                read.time[3] = v * [100, 10, 1][c.at - start - 1];
            }
            'b' | 'B' => read.month = Some(c.month_name()?),
            'z' => read.offset = Some(c.zone()?),
            'Z' => {
                let sign = if c.eat('-') {
                    -1
                } else {
                    c.eat('+');
                    1
                };
                read.offset = Some(Zone::Fixed(sign * c.digits(1, 4)? * MINUTE));
            }
            '%' => {
                if !c.eat('%') {
                    return None;
                }
            }
            _ => return None,
        }
    }
    c.rest().is_empty().then_some(read)
}

/// A date of a date, a timestamp or an ObjectId (whose seconds are signed).
pub fn moment(v: &Value) -> Option<i64> {
    match v {
        Value::DateTime(ms) => Some(*ms),
        Value::Timestamp(t) => Some(t.secs as i64 * SECOND),
        Value::ObjectId(o) => Some(o.seconds() as i32 as i64 * SECOND),
        _ => None,
    }
}
