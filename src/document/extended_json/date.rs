//! Dates as `2024-02-29T12:00:00.123Z`.

use crate::calendar::{civil_from_days, days_from_civil};

const DAY_MILLIS: i64 = 86_400_000;
/// The years 0 to 9999.
const MILLIS_MIN: i64 = -62_167_219_200_000;
const MILLIS_MAX: i64 = 253_402_300_799_999;

/// Milliseconds since the epoch as UTC, with milliseconds always; `None` outside the years 0 to 9999.
pub fn format_date(millis: i64) -> Option<String> {
    (MILLIS_MIN..=MILLIS_MAX).contains(&millis).then(|| with_zone(millis, "Z"))
}

/// Milliseconds since the epoch with the offset of UTC in numbers, as logs and reports of a server have it.
pub fn iso_date(millis: i64) -> String {
    with_zone(millis, "+00:00")
}

fn with_zone(millis: i64, zone: &str) -> String {
    let (year, month, day) = civil_from_days(millis.div_euclid(DAY_MILLIS));
    let rest = millis.rem_euclid(DAY_MILLIS);
    let (hour, minute, second, milli) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}{zone}")
}

/// Reads `YYYY-MM-DD[THH:MM[:SS[.fraction]][Z|+HH[:]MM]]`.
pub fn parse_date(text: &str) -> Option<i64> {
    let mut reader = Reader(text.as_bytes());
    let year = reader.digits(4)?;
    reader.skip(b'-')?;
    let month = reader.digits(2).filter(|m| (1..=12).contains(m))?;
    reader.skip(b'-')?;
    let day = reader.digits(2).filter(|d| (1..=31).contains(d))?;
    let mut millis = days_from_civil(year, month, day) * DAY_MILLIS;
    if reader.0.is_empty() {
        return Some(millis);
    }
    reader.skip(b'T').or_else(|| reader.skip(b' '))?;
    let hour = reader.digits(2).filter(|h| *h < 24)?;
    reader.skip(b':')?;
    let minute = reader.digits(2).filter(|m| *m < 60)?;
    millis += hour * 3_600_000 + minute * 60_000;
    if reader.skip(b':').is_some() {
        millis += reader.digits(2).filter(|s| *s < 60)? * 1000;
        if reader.skip(b'.').is_some() {
            millis += reader.fraction()?;
        }
    }
    millis -= reader.offset()? * 60_000;
    reader.0.is_empty().then_some(millis)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn digits(&mut self, n: usize) -> Option<i64> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        head.iter().try_fold(0, |v, b| b.is_ascii_digit().then(|| v * 10 + (b - b'0') as i64))
    }
    fn skip(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }
    /// Milliseconds out of any number of digits.
    fn fraction(&mut self) -> Option<i64> {
        let n = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(n);
        self.0 = rest;
        let digit = |i: usize| digits.get(i).map_or(0, |b| (b - b'0') as i64);
        (n > 0).then(|| digit(0) * 100 + digit(1) * 10 + digit(2))
    }
    /// Minutes east of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.0.first() {
            None => return Some(0),
            Some(b'Z' | b'z') => {
                self.0 = &self.0[1..];
                return Some(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.digits(2)?;
        let _ = self.skip(b':');
        Some(sign * (hours * 60 + self.digits(2)?))
    }
}

#[cfg(test)]
mod tests {
    use super::{format_date, parse_date};

    #[test]
    fn dates_read_back_as_they_were_written() {
        assert_eq!(format_date(0).unwrap(), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_date(951_782_400_123).unwrap(), "2000-02-29T00:00:00.123Z");
        assert_eq!(parse_date("2012-12-24T12:15:30.501Z"), Some(1_356_351_330_501));
        assert_eq!(parse_date("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(parse_date("1970-01-02"), Some(86_400_000));
        for bad in ["", "1970-13-01", "1970-01-01T00:00:00Zx", "1970-01-01T24:00", "yesterday"] {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
        for i in -500..2000i64 {
            let millis = i * 86_400_000 * 37 + i * 977;
            assert_eq!(parse_date(&format_date(millis).unwrap()), Some(millis));
        }
    }
}
