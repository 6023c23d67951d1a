//! Resume tokens: `{_data: <hexadecimal key>}`. DO NOT CHANGE: clients keep them.
//!
//! ```text
//! version 2   clusterTime version tokenType txnOpIndex fromInvalidate uuid|null [eventIdentifier [fragmentNum]]
//! version 1   clusterTime version tokenType txnOpIndex fromInvalidate [uuid [documentKey]]
//! ```
//! The order of the texts is the order of the stream. A *high-water mark* (token type 0) belongs to no event: it stands
//! before every event of its time and says that everything earlier has been seen. An event is identified by
//! `{operationType, documentKey}` or `{operationType, operationDescription}`. Tokens are equal when their keys are.

use document::{Document, Error, Result, Timestamp, Value, bail, codes, doc, encoding, token_key};

/// The version of the tokens made here.
const VERSION: i32 = 2;
const HIGH_WATER_MARK: i32 = 0;
const EVENT: i32 = 128;

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub time: Timestamp,
    pub version: i32,
    pub is_event: bool,
    /// The place among all operations of a transaction.
    pub operation_index: i64,
    pub from_invalidate: bool,
    pub uuid: Option<[u8; 16]>,
    pub identifier: Option<Document>,
    /// Which part of an event that was split, from 0.
    pub fragment: Option<i32>,
}

impl Token {
    /// The mark that all before `time` has been seen.
    pub fn high_water_mark(time: Timestamp) -> Token {
        Token {
            time,
            version: VERSION,
            is_event: false,
            operation_index: 0,
            from_invalidate: false,
            uuid: None,
            identifier: None,
            fragment: None,
        }
    }
    /// The token of an event.
    pub fn event(
        time: Timestamp,
        operation_index: i64,
        uuid: Option<[u8; 16]>,
        identifier: Document,
    ) -> Token {
        let identifier = Some(identifier);
        Token { is_event: true, operation_index, uuid, identifier, ..Token::high_water_mark(time) }
    }

    /// The text of `_data`.
    pub fn data(&self) -> String {
        let kind = if self.is_event { EVENT } else { HIGH_WATER_MARK };
        let mut values = vec![
            Value::Timestamp(self.time),
            Value::Int32(self.version),
            Value::Int32(kind),
            document::number::int_or_long(self.operation_index),
            Value::Boolean(self.from_invalidate),
        ];
        match self.uuid {
            Some(uuid) => values.push(Value::uuid(uuid)),
            None if self.version > 1 => values.push(Value::Null),
            None => {}
        }
        values.extend(self.identifier.clone().map(Value::Document));
        values.extend(self.fragment.map(Value::Int32));
        let mut text = encoding::hex(&token_key::encode(&values));
        text.make_ascii_uppercase();
        text
    }
    pub fn to_document(&self) -> Document {
        doc! { "_data": self.data() }
    }

    /// Reads a client's token.
    ///
    /// # Errors
    /// 40647 without a text in `_data`, 40648 for bad `_typeBits`, 40649 for an empty text, FailedToParse (9) when it is
    /// not hexadecimal, Overflow (15) and 50811 for a malformed key, and a code for each field that does not fit.
    pub fn parse(d: &Document) -> Result<Token> {
        let Some(text) = d.get_str("_data") else {
            bail!(
                40647,
                "Bad resume token: _data of missing or of wrong type: {}",
                document::shell::document(d)
            )
        };
        if d.get("_typeBits").is_some_and(|v| !matches!(v, Value::Binary(_))) {
            bail!(40648, "Bad resume token: _typeBits of wrong type: {}", document::shell::document(d));
        }
        if text.is_empty() {
            bail!(40649, "Bad resume token: _data is empty");
        }
        let Some(bytes) = encoding::from_hex(text) else {
            bail!(FAILED_TO_PARSE, "resume token string was not a valid hex string")
        };
        Token::of_values(token_key::decode(&bytes)?)
    }

    fn of_values(values: Vec<Value>) -> Result<Token> {
        let mut values = values.into_iter();
        let time = match values.next() {
            Some(Value::Timestamp(time)) => time,
            Some(_) => return invalid("the first field must be a timestamp"),
            None => bail!(40649, "Resume token cannot be empty"),
        };
        let version = match values.next().and_then(|v| v.as_i64()) {
            Some(version @ (1 | 2)) => version as i32,
            Some(version) => {
                bail!(50795, "Invalid Resume Token: only supports version 1 or 2, but found {version}")
            }
            None => bail!(50796, "Resume Token version is missing or no number"),
        };
        let is_event = match values.next().and_then(|v| v.as_i64()) {
            Some(kind) if kind == i64::from(EVENT) => true,
            Some(kind) if kind == i64::from(HIGH_WATER_MARK) => false,
            Some(kind) => bail!(51057, "Token type {kind} not recognized"),
            None => bail!(51055, "Resume Token does not contain tokenType"),
        };
        let operation_index = match values.next().and_then(|v| v.as_i64()) {
            Some(n @ 0..) => n,
            Some(_) => bail!(50794, "Invalid Resume Token: txnOpIndex should be non-negative"),
            None => bail!(50793, "Resume Token does not contain txnOpIndex"),
        };
        let from_invalidate = match values.next() {
            Some(Value::Boolean(b)) => b,
            Some(_) => bail!(50870, "Resume Token: fromInvalidate should be a boolean"),
            None => bail!(50872, "Resume Token does not contain fromInvalidate"),
        };
        let mut token =
            Token { version, is_event, operation_index, from_invalidate, ..Token::high_water_mark(time) };
        token.read_identity(&mut values)?;
        Ok(token)
    }

    fn read_identity(&mut self, values: &mut std::vec::IntoIter<Value>) -> Result<()> {
        match values.next() {
            Some(Value::Null) if self.version > 1 => {}
            Some(v) => match v.as_uuid() {
                Some(uuid) => self.uuid = Some(uuid),
                None => return invalid("uuid must be a UUID"),
            },
            None if self.version > 1 => bail!(6189500, "Expected UUID or null"),
            None => return Ok(()),
        }
        match values.next() {
            Some(Value::Document(identifier)) => self.identifier = Some(identifier),
            Some(_) => bail!(6189503, "Resume Token eventIdentifier is not an object"),
            None if self.version > 1 && self.is_event => {
                bail!(6189502, "Event resume tokens must have an event identifier")
            }
            None => {}
        }
        self.fragment = match values.next() {
            Some(v) => match v.as_i64().and_then(|n| i32::try_from(n).ok()) {
                Some(n @ 0..) => Some(n),
                _ => bail!(7182501, "Resume Token fragmentNum should be a non-negative integer"),
            },
            None => None,
        };
        match values.next() {
            Some(_) => bail!(40646, "invalid oversized resume token"),
            None => Ok(()),
        }
    }

    /// Where it stands in the stream; tokens of several versions compare.
    pub fn order(&self) -> String {
        Token { version: VERSION, ..self.clone() }.data()
    }
    /// The token of the whole event that this one's fragment belongs to.
    pub fn whole(&self) -> Token {
        Token { fragment: None, ..self.clone() }
    }
}

fn invalid<T>(what: &str) -> Result<T> {
    Err(Error::new(codes::INVALID_RESUME_TOKEN, format!("Invalid resume token: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time() -> Timestamp {
        Timestamp::new(0x5F00_0001, 7)
    }

    #[test]
    fn a_high_water_mark_has_the_published_form_and_stands_before_the_events_of_its_time() {
        let mark = Token::high_water_mark(time());
        assert_eq!(mark.data(), "825F000001000000072B0429296E1404");
        let event = Token::event(time(), 0, Some([1; 16]), doc! { "operationType": "insert" });
        assert!(mark.data() < event.data());
        assert!(event.data() < Token { from_invalidate: true, ..event.clone() }.data());
        assert!(event.data() < Token { operation_index: 1, ..event.clone() }.data());
        assert!(event.data() < Token { fragment: Some(0), ..event.clone() }.data());
    }

    #[test]
    fn tokens_are_read_back() {
        let identifier = doc! { "operationType": "insert", "documentKey": { "_id": 5 } };
        let mut token = Token::event(time(), 300, Some([1; 16]), identifier);
        assert_eq!(Token::parse(&token.to_document()).unwrap(), token);
        token.fragment = Some(3);
        assert_eq!(Token::parse(&token.to_document()).unwrap(), token);
        let lower = doc! { "_data": token.data().to_lowercase() };
        assert_eq!(Token::parse(&lower).unwrap(), token);
    }

    #[test]
    fn malformed_tokens_have_their_codes() {
        let code = |d: Document| Token::parse(&d).unwrap_err().code;
        assert_eq!(code(doc! {}), 40647);
        assert_eq!(code(doc! { "_data": 5 }), 40647);
        assert_eq!(code(doc! { "_data": "00", "_typeBits": "x" }), 40648);
        assert_eq!(code(doc! { "_data": "" }), 40649);
        assert_eq!(code(doc! { "_data": "xyz" }), 9);
        assert_eq!(code(doc! { "_data": "abc" }), 9);
        assert_eq!(code(doc! { "_data": "00" }), 50811);
        assert_eq!(code(doc! { "_data": "825F0000010000000704" }), 50796);
        assert_eq!(code(doc! { "_data": "825F000001000000072B0829296E1404" }), 50795);
        assert_eq!(code(doc! { "_data": "825F000001000000072B042B0229" }), 51057);
    }
}
