//! Objects into documents.

use super::decode::is_index;
use super::native::{Kernel, Native, Original, native_of};
use super::text::text_of;
use crate::errors;
use document::{Doc, DocBuf, DocWriter, ObjectId, Timestamp, codes};
use rquickjs::object::Filter;
use rquickjs::{Atom, Ctx, Object, Result, Value, qjs};
use std::collections::HashMap;

/// Deeper objects are refused: almost always one that holds itself.
const DEPTH_MAX: usize = 250;
/// As large as a buffer of the real shell may grow.
const BYTES_MAX: usize = 64 << 20;

/// The document of an object. A top-level `_id` is written first.
pub fn to_bson<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Vec<u8>> {
    let kernel = Kernel::of(ctx)?;
    let mut out = Vec::with_capacity(256);
    let mut encoder = Encoder { ctx, kernel: &kernel, out: &mut out };
    encoder.top(object)?;
    Ok(out)
}

/// As [`to_bson`], refusing what no server would take as one document.
pub fn to_bson_bounded<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Vec<u8>> {
    let bytes = to_bson(ctx, object)?;
    if bytes.len() > wire::limits::MAX_DOCUMENT {
        let first = Doc::from_validated(&bytes).iter().next().map_or(String::new(), |e| e.name().to_string());
        let text = format!(
            "BSONObj size: {n} (0x{n:X}) is invalid. Size must be between 0 and {max}(16MB) First element: {first}",
            n = bytes.len(),
            max = wire::limits::MAX_DOCUMENT
        );
        return Err(errors::throw_code(ctx, 10334, &text));
    }
    Ok(bytes)
}

/// One value as the document `{"": value}`.
pub fn value_to_bson<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<u8>> {
    let kernel = Kernel::of(ctx)?;
    let mut out = Vec::with_capacity(64);
    let start = open(&mut out);
    Encoder { ctx, kernel: &kernel, out: &mut out }.value("", value, None, 1)?;
    close(&mut out, start);
    Ok(out)
}

struct Encoder<'a, 'js> {
    ctx: &'a Ctx<'js>,
    kernel: &'a Kernel<'js>,
    out: &'a mut Vec<u8>,
}

impl<'js> Encoder<'_, 'js> {
    fn top(&mut self, object: &Object<'js>) -> Result<()> {
        if object.is_array() {
            return self.array(object, 0);
        }
        self.object(object, 0)
    }
    /// Length, elements and terminator of an object's document.
    fn object(&mut self, object: &Object<'js>, depth: usize) -> Result<()> {
        self.check(depth)?;
        let original = original_of(object);
        if let Some(original) = original.as_ref().filter(|o| o.exact) {
            self.out.extend_from_slice(original.doc().bytes());
            return Ok(());
        }
        let mut originals = original.as_ref().map(|o| Originals::new(o.doc()));
        let start = open(self.out);
        for (name, atom) in self.names(object, originals.as_ref(), depth)? {
            let value: Value = object.get(atom)?;
            let tag = originals.as_mut().and_then(|o| o.tag_of(name.as_bytes()));
            self.value(&name, &value, tag, depth + 1)?;
        }
        close(self.out, start);
        Ok(())
    }
    /// Own enumerable names in the order they are written.
    fn names(
        &self,
        object: &Object<'js>,
        originals: Option<&Originals<'_>>,
        depth: usize,
    ) -> Result<Vec<(String, Atom<'js>)>> {
        let mut names = Vec::new();
        for atom in object.own_keys::<Atom>(Filter::new().string().enum_only()) {
            let atom = atom?;
            let name = text_of(self.ctx, &atom.to_value()?)?;
            if name.contains('\0') {
                let text = "JavaScript property (name) contains a null char which is not allowed in BSON";
                return Err(errors::throw_code(self.ctx, 16985, text));
            }
            names.push((name, atom));
        }
        if let Some(originals) = originals.filter(|o| o.elements.iter().any(|(name, _)| is_index(name))) {
            let places: HashMap<&[u8], usize> =
                originals.elements.iter().enumerate().rev().map(|(i, (name, _))| (*name, i)).collect();
            names.sort_by_key(|(name, _)| places.get(name.as_bytes()).copied().unwrap_or(usize::MAX));
        }
        if depth == 0
            && let Some(at) = names.iter().position(|(name, _)| name == "_id")
        {
            names[..=at].rotate_right(1);
        }
        Ok(names)
    }
    fn array(&mut self, object: &Object<'js>, depth: usize) -> Result<()> {
        self.check(depth)?;
        let original = object
            .get::<_, Value>(self.kernel.original.as_atom())
            .ok()
            .and_then(|hidden| hidden.as_object().and_then(original_of));
        let mut originals = original.as_ref().map(|o| Originals::new(o.doc()));
        let start = open(self.out);
        // Asked as a script would: the engine's own count is for arrays of fewer than 2^31 elements.
        let length: f64 = object.get("length")?;
        // An element takes its tag, at least one digit and a terminator.
        self.check_size(length as usize * 3)?;
        for i in 0..length as u32 {
            self.check_size(0)?;
            let value: Value = object.get(i)?;
            let name = i.to_string();
            let tag = originals.as_mut().and_then(|o| o.tag_of(name.as_bytes()));
            self.value(&name, &value, tag, depth + 1)?;
        }
        close(self.out, start);
        Ok(())
    }
    fn check(&self, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            let text = format!(
                "Exceeded depth limit of {DEPTH_MAX} when converting js object to BSON. Do you have a cycle?"
            );
            return Err(errors::throw_code(self.ctx, 17279, &text));
        }
        self.check_size(0)
    }
    /// Whether `more` bytes may follow what has been written.
    fn check_size(&self, more: usize) -> Result<()> {
        let bytes = self.out.len() + more;
        if bytes > BYTES_MAX {
            let text = format!("BufBuilder attempted to grow() to {bytes} bytes, past the 64MB limit.");
            return Err(errors::throw_code(self.ctx, 13548, &text));
        }
        Ok(())
    }
    /// Appends one element. `tag` is the type the field had in the document the object came from.
    fn value(&mut self, name: &str, value: &Value<'js>, tag: Option<u8>, depth: usize) -> Result<()> {
        if let Some(number) = value.as_number() {
            self.number(name, number, tag);
        } else if value.is_string() {
            let text = text_of(self.ctx, value)?;
            self.check_size(text.len())?;
            let kept = if tag == Some(0x0E) { 0x0E } else { 0x02 };
            self.writer(|w| w.string_like(kept, name, &text));
        } else if let Some(flag) = value.as_bool() {
            self.writer(|w| w.bool(name, flag));
        } else if value.is_null() {
            self.writer(|w| w.null(name));
        } else if value.is_undefined() {
            self.writer(|w| w.tag_only(0x06, name));
        } else if let Some(object) = value.as_object() {
            return self.compound(name, object, depth);
        } else {
            let text = format!("unable to convert JavaScript property to mongo element {name}");
            return Err(errors::throw_code(self.ctx, 16662, &text));
        }
        Ok(())
    }
    fn number(&mut self, name: &str, number: f64, tag: Option<u8>) {
        let whole = number as i32;
        let stays_int =
            tag == Some(0x10) && whole as f64 == number && !(whole == 0 && number.is_sign_negative());
        self.writer(|w| if stays_int { w.i32(name, whole) } else { w.double(name, number) });
    }
    fn compound(&mut self, name: &str, object: &Object<'js>, depth: usize) -> Result<()> {
        if let Some(native) = native_of(object.as_value()) {
            return self.native(name, native, object, depth);
        }
        if object.is_array() {
            self.head(0x04, name);
            return self.array(object, depth);
        }
        if object.is_function() {
            return self.function(name, object);
        }
        let raw = object.as_raw();
        // SAFETY: both only look at the value's class.
        let (is_date, is_regexp) = unsafe { (qjs::JS_IsDate(raw), qjs::JS_IsRegExp(raw)) };
        if is_date {
            let millis: rquickjs::Coerced<f64> = object
                .get::<_, rquickjs::Function>("valueOf")?
                .call((rquickjs::function::This(object.clone()),))?;
            self.writer(|w| w.date(name, if millis.0.is_nan() { i64::MIN } else { millis.0 as i64 }));
            return Ok(());
        }
        if is_regexp {
            return self.regex(name, object);
        }
        self.head(0x03, name);
        self.object(object, depth)
    }
    fn function(&mut self, name: &str, object: &Object<'js>) -> Result<()> {
        if *object == self.kernel.min_key {
            self.writer(|w| w.tag_only(0xFF, name));
        } else if *object == self.kernel.max_key {
            self.writer(|w| w.tag_only(0x7F, name));
        } else {
            let code = text_of(self.ctx, object.as_value())?;
            self.writer(|w| w.string_like(0x0D, name, &code));
        }
        Ok(())
    }
    fn native(&mut self, name: &str, native: Native, object: &Object<'js>, depth: usize) -> Result<()> {
        match native {
            Native::Long(v) => self.writer(|w| w.i64(name, v)),
            Native::Int(v) => self.writer(|w| w.i32(name, v)),
            Native::Decimal(v) => self.writer(|w| w.decimal(name, v)),
            Native::ObjectId(v) => self.writer(|w| w.object_id(name, v)),
            Native::Binary(v) => self.writer(|w| w.binary(name, v.subtype, &v.bytes)),
            Native::Timestamp => {
                let (secs, inc) = (whole(object, "t")?, whole(object, "i")?);
                self.writer(|w| w.timestamp(name, Timestamp::new(secs, inc)));
            }
            Native::Code => self.code(name, object, depth)?,
            Native::Pointer => {
                let ns = text_of(self.ctx, &object.get("ns")?)?;
                let id = match native_of(&object.get::<_, Value>("id")?) {
                    Some(Native::ObjectId(id)) => id,
                    _ => ObjectId::default(),
                };
                self.writer(|w| w.db_pointer(name, &ns, id));
            }
        }
        Ok(())
    }
    fn code(&mut self, name: &str, object: &Object<'js>, depth: usize) -> Result<()> {
        let code = text_of(self.ctx, &object.get("code")?)?;
        let scope: Value = object.get("scope")?;
        let Some(scope) = scope.as_object() else {
            self.writer(|w| w.string_like(0x0D, name, &code));
            return Ok(());
        };
        let mut bytes = Vec::new();
        Encoder { ctx: self.ctx, kernel: self.kernel, out: &mut bytes }.object(scope, depth)?;
        self.writer(|w| w.code_with_scope(name, &code, &DocBuf::from_validated(bytes)));
        Ok(())
    }
    fn regex(&mut self, name: &str, object: &Object<'js>) -> Result<()> {
        let hidden: Value = object.get(self.kernel.original.as_atom())?;
        if hidden.is_string() {
            let spelled = text_of(self.ctx, &hidden)?;
            let (pattern, options) = spelled.split_once('\0').unwrap_or((&spelled, ""));
            self.writer(|w| w.regex(name, pattern, options));
            return Ok(());
        }
        let pattern = text_of(self.ctx, &object.get("source")?)?;
        let options = text_of(self.ctx, &object.get("flags")?)?;
        if pattern.contains('\0') {
            return Err(errors::throw_code(
                self.ctx,
                codes::BAD_VALUE,
                "Regular expression cannot contain an embedded null byte",
            ));
        }
        let pattern = if pattern == "(?:)" { "" } else { &pattern };
        self.writer(|w| w.regex(name, pattern, &options));
        Ok(())
    }
    fn head(&mut self, tag: u8, name: &str) {
        self.writer(|w| w.tag_only(tag, name));
    }
    fn writer(&mut self, f: impl FnOnce(&mut DocWriter<'_>)) {
        f(&mut DocWriter::resume(self.out));
    }
}

/// A property of a Timestamp as the unsigned number it must be.
fn whole(object: &Object<'_>, name: &str) -> Result<u32> {
    object.get::<_, rquickjs::Coerced<f64>>(name).map(|v| v.0 as u32)
}

fn original_of(object: &Object<'_>) -> Option<Original> {
    let class = object.as_class::<Original>()?;
    class.try_borrow().ok().map(|original| original.clone())
}

/// The fields of an original document, looked up in the order objects usually still have.
struct Originals<'a> {
    elements: Vec<(&'a [u8], u8)>,
    next: usize,
}

impl<'a> Originals<'a> {
    fn new(doc: Doc<'a>) -> Originals<'a> {
        Originals { elements: doc.iter().map(|e| (e.name_bytes(), e.tag())).collect(), next: 0 }
    }
    fn place_of(&self, name: &[u8]) -> Option<usize> {
        self.elements.iter().position(|(known, _)| *known == name)
    }
    fn tag_of(&mut self, name: &[u8]) -> Option<u8> {
        let expected = self.elements.get(self.next).filter(|(known, _)| *known == name).map(|_| self.next);
        let place = expected.or_else(|| self.place_of(name))?;
        self.next = place + 1;
        Some(self.elements[place].1)
    }
}

fn open(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

fn close(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
