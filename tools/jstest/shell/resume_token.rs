//! `decodeResumeToken({_data})`: what the token of a change stream's event holds; and the two types of tokens by name.
//!
//! The hexadecimal text of `_data` is a key in the byte order format that servers of the real system publish in tokens
//! (this is not the format of `document::key_string`, which is for indexes on our disks):
//!
//! ```text
//! clusterTime:Timestamp version:number tokenType:number txnOpIndex:number fromInvalidate:bool
//! [uuid:UUID|null [eventIdentifier:document [fragmentNum:number]]] 0x04
//! ```
//! Versions 1 (whose identifier is the document's key) and 2 have this form. `_typeBits`, which tell an int64 from an
//! int32, are not looked at: JavaScript sees numbers. Keys that are no whole numbers of 63 bits are refused.

use crate::natives::define;
use crate::{Shell, bson, errors};
use document::encoding::from_hex;
use document::{Binary, Document, ObjectId, Regex, Timestamp, Value as Bson, codes, number};
use rquickjs::{Ctx, Object, Result, Value};
use std::rc::Rc;

/// Of a token that belongs to an event.
const EVENT: u8 = 128;
/// Of a token which says that everything up to a time has been seen.
const HIGH_WATER_MARK: u8 = 0;
/// Deeper document keys are refused.
const DEPTH_MAX: usize = 100;

pub fn register<'js>(ctx: &Ctx<'js>, _shell: &Rc<Shell>) -> Result<()> {
    ctx.globals().set("eventResumeTokenType", EVENT)?;
    ctx.globals().set("highWaterMarkResumeTokenType", HIGH_WATER_MARK)?;
    define(ctx, "decodeResumeToken", |ctx: Ctx<'js>, token: Value<'js>| -> Result<Object<'js>> {
        let data = match token.as_object() {
            Some(token) => token.get("_data")?,
            None => token.clone(),
        };
        let text = if data.is_string() { bson::text_of(&ctx, &data)? } else { String::new() };
        let decoded = from_hex(&text).as_deref().map_or(Err("it is no hexadecimal text"), decode);
        match decoded {
            Ok(document) => bson::from_bson(&ctx, document.to_vec().into()),
            Err(reason) => {
                let text = format!("decodeResumeToken: {text:?} is no resume token: {reason}");
                Err(errors::throw_code(&ctx, codes::BAD_VALUE, &text))
            }
        }
    })
}

type Decoded<T> = std::result::Result<T, &'static str>;

fn decode(bytes: &[u8]) -> Decoded<Document> {
    let mut values = Reader { bytes }.key()?.into_iter();
    let mut token = Document::new();
    let mut next = |name: &str, fits: fn(&Bson) -> bool, required: bool| match values.next() {
        Some(value) if fits(&value) => {
            // A token of no collection has a null in the place of the UUID.
            if !value.is_null() {
                token.push(name, value);
            }
            Ok(true)
        }
        Some(_) => Err("a value in it has another type than its place"),
        None if required => Err("it ends too early"),
        None => Ok(false),
    };
    next("clusterTime", |v| v.as_timestamp().is_some(), true)?;
    next("version", |v| matches!(v.as_i64(), Some(1 | 2)), true)?;
    next("tokenType", |v| matches!(v.as_i64(), Some(0 | 128)), true)?;
    next("txnOpIndex", Bson::is_number, true)?;
    next("fromInvalidate", |v| v.as_bool().is_some(), true)?;
    next("uuid", |v| v.is_null() || v.as_uuid().is_some(), false)?;
    next("eventIdentifier", |v| v.as_document().is_some(), false)?;
    next("fragmentNum", Bson::is_number, false)?;
    match values.next() {
        None => Ok(token),
        Some(_) => Err("it goes on after its end"),
    }
}

/// What begins each value of a key; the order of these is the order of types.
mod kind {
    pub(super) const END: u8 = 0x04;
    pub(super) const MIN_KEY: u8 = 0x0A;
    pub(super) const UNDEFINED: u8 = 0x0F;
    pub(super) const NULL: u8 = 0x14;
    /// Zero; a number of n bytes is n below when negative, n + 1 above when positive.
    pub(super) const ZERO: u8 = 0x29;
    pub(super) const STRING: u8 = 0x3C;
    pub(super) const DOCUMENT: u8 = 0x46;
    pub(super) const ARRAY: u8 = 0x50;
    pub(super) const BINARY: u8 = 0x5A;
    pub(super) const OBJECT_ID: u8 = 0x64;
    pub(super) const FALSE: u8 = 0x6E;
    pub(super) const TRUE: u8 = 0x6F;
    pub(super) const DATE: u8 = 0x78;
    pub(super) const TIMESTAMP: u8 = 0x82;
    pub(super) const REGEX: u8 = 0x8C;
    pub(super) const MAX_KEY: u8 = 0xF0;
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// All values up to the end of the key.
    fn key(&mut self) -> Decoded<Vec<Bson>> {
        let mut values = Vec::new();
        loop {
            match self.byte()? {
                kind::END if self.bytes.is_empty() => return Ok(values),
                kind::END => return Err("it goes on after its end"),
                kind => values.push(self.value(kind, 0)?),
            }
        }
    }
    fn take(&mut self, n: usize) -> Decoded<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(n).ok_or("it ends too early")?;
        self.bytes = rest;
        Ok(head)
    }
    fn fixed<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        self.take(N).map(|bytes| bytes.try_into().unwrap_or([0; N]))
    }
    fn byte(&mut self) -> Decoded<u8> {
        self.fixed::<1>().map(|[byte]| byte)
    }
    fn value(&mut self, kind: u8, depth: usize) -> Decoded<Bson> {
        if depth > DEPTH_MAX {
            return Err("it is nested too deeply");
        }
        Ok(match kind {
            kind::MIN_KEY => Bson::MinKey,
            kind::UNDEFINED => Bson::Undefined,
            kind::NULL => Bson::Null,
            kind::ZERO => Bson::Int32(0),
            kind::STRING => Bson::String(self.text()?),
            kind::DOCUMENT => Bson::Document(self.document(depth)?),
            kind::ARRAY => Bson::Array(self.array(depth)?),
            kind::BINARY => Bson::Binary(self.binary()?),
            kind::OBJECT_ID => Bson::ObjectId(ObjectId(self.fixed()?)),
            kind::FALSE => Bson::Boolean(false),
            kind::TRUE => Bson::Boolean(true),
            kind::DATE => Bson::DateTime((u64::from_be_bytes(self.fixed()?) ^ 1 << 63) as i64),
            kind::TIMESTAMP => Bson::Timestamp(Timestamp::from_u64(u64::from_be_bytes(self.fixed()?))),
            kind::REGEX => {
                let (pattern, options) = (self.name()?, self.name()?);
                Regex { pattern, options }.into()
            }
            kind::MAX_KEY => Bson::MaxKey,
            kind => self.whole(kind)?,
        })
    }
    /// A number other than zero: its digits doubled, in as many bytes as needed, inverted when it is negative.
    fn whole(&mut self, kind: u8) -> Decoded<Bson> {
        // Below zero is one kind for tiny fractions too; above it likewise.
        let (negative, length) = match kind {
            0x20..=0x27 => (true, 0x28 - kind),
            0x2B..=0x32 => (false, kind - 0x2A),
            0x1E..=0x33 => return Err("the shell reads only whole numbers of 63 bits"),
            _ => return Err("it holds a type that the shell cannot read"),
        };
        let bytes = self.take(length as usize)?;
        let mask = if negative { 0xFF } else { 0 };
        let doubled = bytes.iter().fold(0u64, |n, byte| n << 8 | (byte ^ mask) as u64);
        if doubled & 1 == 1 {
            return Err("the shell reads only whole numbers of 63 bits");
        }
        let magnitude = (doubled >> 1) as i64;
        Ok(number::int_or_long(if negative { -magnitude } else { magnitude }))
    }
    /// Bytes up to a zero; a zero within is followed by 0xFF.
    fn text(&mut self) -> Decoded<String> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 if self.bytes.first() == Some(&0xFF) => {
                    self.byte()?;
                    text.push(0);
                }
                0 => return String::from_utf8(text).map_err(|_| "a text in it is no UTF-8"),
                byte => text.push(byte),
            }
        }
    }
    /// Bytes up to a zero.
    fn name(&mut self) -> Decoded<String> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or("it ends too early")?;
        let name = self.take(end)?;
        self.byte()?;
        String::from_utf8(name.to_vec()).map_err(|_| "a name in it is no UTF-8")
    }
    /// Fields begin with the order of their type, so that types compare before names.
    fn document(&mut self, depth: usize) -> Decoded<Document> {
        let mut document = Document::new();
        while self.byte()? != 0 {
            let name = self.name()?;
            let kind = self.byte()?;
            document.push(name, self.value(kind, depth + 1)?);
        }
        Ok(document)
    }
    fn array(&mut self, depth: usize) -> Decoded<Vec<Bson>> {
        let mut array = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(array),
                kind => array.push(self.value(kind, depth + 1)?),
            }
        }
    }
    fn binary(&mut self) -> Decoded<Binary> {
        let length = match self.byte()? {
            0xFF => u32::from_be_bytes(self.fixed()?) as usize,
            length => length as usize,
        };
        let subtype = self.byte()?;
        Ok(Binary { subtype, bytes: self.take(length)?.to_vec() })
    }
}

#[cfg(test)]
mod tests;
