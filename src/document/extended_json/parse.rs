//! The reader: JSON into a tree, then `$` wrappers into their types, from the inside out.

use super::date::parse_date;
use crate::encoding::from_base64_lenient;
use crate::{
    Binary, CodeWithScope, DbPointer, Decimal128, Document, ObjectId, Regex, Result, Timestamp, Value, err,
    number,
};

/// Levels the reader enters; more would be refused by the validator anyway.
const DEPTH_MAX: usize = crate::validate::DEPTH_MAX;

/// Parses either form. Errors: FailedToParse.
pub fn from_str(s: &str) -> Result<Value> {
    let mut p = Parser { text: s, at: 0, depth: 0 };
    let value = p.value()?;
    p.blank();
    match p.at == s.len() {
        true => Ok(value),
        false => Err(p.fault("text after the value")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn fault(&self, what: &str) -> crate::Error {
        err!(FAILED_TO_PARSE, "{what} at offset {} of extended JSON", self.at)
    }
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
    fn expect(&mut self, byte: u8) -> Result<()> {
        self.blank();
        if self.peek() != Some(byte) {
            return Err(self.fault(&format!("expected '{}'", byte as char)));
        }
        self.at += 1;
        Ok(())
    }
    /// Passes the byte if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.blank();
        let found = self.peek() == Some(byte);
        self.at += found as usize;
        found
    }
    fn value(&mut self) -> Result<Value> {
        self.blank();
        match self.peek() {
            Some(b'{') => self.nested(Parser::object),
            Some(b'[') => self.nested(Parser::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }
    fn nested(&mut self, f: fn(&mut Self) -> Result<Value>) -> Result<Value> {
        if self.depth == DEPTH_MAX {
            return Err(self.fault("nested too deeply"));
        }
        self.depth += 1;
        let value = f(self);
        self.depth -= 1;
        value
    }
    fn word(&mut self) -> Result<Value> {
        let rest = &self.text[self.at..];
        let words = [("true", Value::Boolean(true)), ("false", Value::Boolean(false)), ("null", Value::Null)];
        for (word, value) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault("expected a value"))
    }
    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        if !text.contains(['.', 'e', 'E'])
            && let Ok(n) = text.parse::<i64>()
        {
            return Ok(number::int_or_long(n));
        }
        text.parse().map(Value::Double).map_err(|_| self.fault("not a number"))
    }
    fn array(&mut self) -> Result<Value> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            if !self.take(b',') {
                break;
            }
        }
        self.expect(b']')?;
        Ok(Value::Array(items))
    }
    fn object(&mut self) -> Result<Value> {
        self.expect(b'{')?;
        let mut fields = Document::new();
        if !self.take(b'}') {
            loop {
                self.blank();
                let name = self.string()?;
                self.expect(b':')?;
                let value = self.value()?;
                fields.push(name, value);
                if !self.take(b',') {
                    break;
                }
            }
            self.expect(b'}')?;
        }
        if !fields.first().is_some_and(|(name, _)| name.starts_with('$')) {
            return Ok(Value::Document(fields));
        }
        unwrap(fields).map_err(|name| self.fault(&format!("malformed {name}")))
    }
    fn string(&mut self) -> Result<String> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let n = rest.find(['"', '\\']).ok_or_else(|| self.fault("string without end"))?;
            out.push_str(&rest[..n]);
            self.at += n + 1;
            if rest.as_bytes()[n] == b'"' {
                return Ok(out);
            }
            let escape = self.peek().ok_or_else(|| self.fault("string without end"))?;
            self.at += 1;
            out.push(match escape {
                b'"' | b'\\' | b'/' => escape as char,
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unicode()?,
                _ => return Err(self.fault("unknown escape")),
            });
        }
    }
    fn unicode(&mut self) -> Result<char> {
        let high = self.hex4()?;
        if !(0xD800..0xDC00).contains(&high) {
            return char::from_u32(high).ok_or_else(|| self.fault("lone surrogate"));
        }
        if !self.text[self.at..].starts_with("\\u") {
            return Err(self.fault("lone surrogate"));
        }
        self.at += 2;
        let low = self.hex4()?;
        let low =
            low.checked_sub(0xDC00).filter(|l| *l < 0x400).ok_or_else(|| self.fault("lone surrogate"))?;
        char::from_u32(0x10000 + ((high - 0xD800) << 10) + low).ok_or_else(|| self.fault("lone surrogate"))
    }
    fn hex4(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code =
            digits.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or_else(|| self.fault("bad \\u"))?;
        self.at += 4;
        Ok(code)
    }
}

/// Turns `{"$oid": ..}` and its like into the value; documents that merely begin with another `$` name stay. The
/// error is the name of the malformed wrapper.
fn unwrap(d: Document) -> Result<Value, String> {
    let Some((name, first)) = d.first() else { return Ok(Value::Document(d)) };
    let value = match (name, d.len()) {
        ("$oid", 1) => first.as_str().and_then(ObjectId::parse).map(Value::ObjectId),
        ("$numberInt", 1) => first.as_str().and_then(|s| s.parse().ok()).map(Value::Int32),
        ("$numberLong", 1) => first.as_str().and_then(|s| s.parse().ok()).map(Value::Int64),
        ("$numberDouble", 1) => first.as_str().and_then(|s| s.parse().ok()).map(Value::Double),
        ("$numberDecimal", 1) => first.as_str().and_then(Decimal128::parse).map(Value::Decimal128),
        ("$symbol", 1) => first.as_str().map(|s| Value::Symbol(s.to_string())),
        ("$undefined", 1) => first.truthy().then_some(Value::Undefined),
        ("$minKey", 1) => Some(Value::MinKey),
        ("$maxKey", 1) => Some(Value::MaxKey),
        ("$uuid", 1) => first.as_str().and_then(crate::uuid::parse).map(Value::uuid),
        ("$date", 1) => date(first),
        ("$timestamp", 1) => timestamp(first),
        ("$regularExpression", 1) => regular_expression(first),
        ("$binary", 1 | 2) => binary(&d),
        ("$dbPointer", 1) => db_pointer(first),
        ("$code", 1) => first.as_str().map(|s| Value::JavaScript(s.to_string())),
        ("$code", 2) => match (first, d.get("$scope")) {
            (Value::String(code), Some(Value::Document(scope))) => {
                Some(CodeWithScope { code: code.clone(), scope: scope.clone() }.into())
            }
            _ => None,
        },
        _ => return Ok(Value::Document(d)),
    };
    value.ok_or_else(|| name.to_string())
}

fn date(v: &Value) -> Option<Value> {
    match v {
        Value::String(s) => parse_date(s).map(Value::DateTime),
        v => v.as_i64().map(Value::DateTime),
    }
}

fn timestamp(v: &Value) -> Option<Value> {
    let d = v.as_document()?;
    let part = |name| d.get_i64(name).and_then(|n| u32::try_from(n).ok());
    Some(Value::Timestamp(Timestamp::new(part("t")?, part("i")?)))
}

fn regular_expression(v: &Value) -> Option<Value> {
    let d = v.as_document()?;
    let (pattern, options) = (d.get_str("pattern")?, d.get_str("options").unwrap_or_default());
    if pattern.contains('\0') || options.contains('\0') {
        return None;
    }
    Some(Regex { pattern: pattern.to_string(), options: options.to_string() }.into())
}

fn binary(d: &Document) -> Option<Value> {
    let (text, subtype) = match d.get("$binary")? {
        Value::Document(inner) => (inner.get_str("base64")?, inner.get_str("subType")?),
        Value::String(s) => (s.as_str(), d.get_str("$type")?),
        _ => return None,
    };
    let subtype = u8::from_str_radix(subtype, 16).ok()?;
    Some(Value::Binary(Binary { subtype, bytes: from_base64_lenient(text)? }))
}

fn db_pointer(v: &Value) -> Option<Value> {
    let d = v.as_document()?;
    Some(DbPointer { ns: d.get_str("$ref")?.to_string(), id: d.get("$id")?.as_object_id()? }.into())
}
