//! Documents as people write them on a command line: JSON, and also names without quotes and single quotes.
//!
//! ```text
//! {mode: 'alwaysOn', "data": {errorCode: 11600, failCommands: ["find"]}}
//! ```

use document::{Document, Value};

/// Depth of nesting that is still read.
const DEPTH_MAX: usize = 100;

/// The document or array; `None` for any other text.
pub fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text.trim() };
    let value = reader.value(0)?;
    reader.skip();
    matches!(value, Value::Document(_) | Value::Array(_)).then_some(value).filter(|_| reader.rest.is_empty())
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }
    fn take(&mut self, wanted: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip();
        match self.rest.chars().next()? {
            _ if depth > DEPTH_MAX => None,
            '{' => self.document(depth),
            '[' => self.array(depth),
            '"' | '\'' => self.quoted().map(Value::String),
            _ => scalar(self.bare()?),
        }
    }
    fn document(&mut self, depth: usize) -> Option<Value> {
        let mut d = Document::new();
        self.take('{');
        while !self.take('}') {
            self.skip();
            let name = match self.rest.chars().next()? {
                '"' | '\'' => self.quoted()?,
                _ => self.bare()?.to_string(),
            };
            if !self.take(':') {
                return None;
            }
            d.push(name, self.value(depth + 1)?);
            if !self.take(',') && !self.rest.starts_with('}') {
                return None;
            }
        }
        Some(Value::Document(d))
    }
    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.take('[');
        while !self.take(']') {
            items.push(self.value(depth + 1)?);
            if !self.take(',') && !self.rest.starts_with(']') {
                return None;
            }
        }
        Some(Value::Array(items))
    }
    fn quoted(&mut self) -> Option<String> {
        let mut chars = self.rest.char_indices();
        let (_, quote) = chars.next()?;
        let mut out = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => out.push(match chars.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }),
                c if c == quote => {
                    self.rest = self.rest.get(at + c.len_utf8()..)?;
                    return Some(out);
                }
                c => out.push(c),
            }
        }
        None
    }
    fn bare(&mut self) -> Option<&str> {
        let end =
            self.rest.find(|c: char| ",:{}[]\"'".contains(c) || c.is_whitespace()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(word).filter(|w| !w.is_empty())
    }
}

fn scalar(word: &str) -> Option<Value> {
    Some(match word {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        "null" => Value::Null,
        _ => match (word.parse::<i32>(), word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(n), _, _) => Value::Int32(n),
            (_, Ok(n), _) => Value::Int64(n),
            (_, _, Ok(n)) => Value::Double(n),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn names_need_no_quotes_and_any_quotes_do() {
        let wanted = doc! { "mode": { "times": 2 }, "data": { "failCommands": ["find", "a'b"], "p": 0.5, "x": Value::Null } };
        let text = r#" {mode:{'times': 2}, "data":{failCommands:["find",'a\'b'], p: 0.5,x:null}} "#;
        assert_eq!(parse(text), Some(Value::Document(wanted)));
    }

    #[test]
    fn what_is_no_document_is_none() {
        for text in ["", "5", "{", "{a}", "{a:}", "{a:1", "{a:1}x", "{a:b}", "[1,", "{a:'x}", "{a:1 b:2}"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("[]"), Some(Value::Array(Vec::new())));
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }
}
