//! Documents into objects.

use super::native::{Kernel, Native, Original};
use super::text::boxed;
use document::{Binary, Doc, ValueRef};
use rquickjs::{Array, Class, Ctx, Object, Result, Value, qjs};
use std::sync::Arc;

/// The object of one document. `bytes` must have been validated: at most [`wire::limits::MAX_NESTING`] levels.
pub fn from_bson<'js>(ctx: &Ctx<'js>, bytes: Arc<[u8]>) -> Result<Object<'js>> {
    let kernel = Kernel::of(ctx)?;
    Decoder { ctx, kernel: &kernel, bytes: &bytes }.document(Doc::from_validated(&bytes), false)
}

/// As [`from_bson`], for bytes that only their owner knows how to write back.
pub(super) fn from_exact_bson<'js>(ctx: &Ctx<'js>, bytes: Arc<[u8]>) -> Result<Object<'js>> {
    let kernel = Kernel::of(ctx)?;
    Decoder { ctx, kernel: &kernel, bytes: &bytes }.document(Doc::from_validated(&bytes), true)
}

/// The first value of a document, as a JavaScript value; undefined for `{}`.
pub fn value_from_bson<'js>(ctx: &Ctx<'js>, bytes: Arc<[u8]>) -> Result<Value<'js>> {
    let kernel = Kernel::of(ctx)?;
    let decoder = Decoder { ctx, kernel: &kernel, bytes: &bytes };
    match Doc::from_validated(&bytes).iter().next() {
        Some(element) => decoder.value(element.value()),
        None => Ok(Value::new_undefined(ctx.clone())),
    }
}

struct Decoder<'a, 'js> {
    ctx: &'a Ctx<'js>,
    kernel: &'a Kernel<'js>,
    bytes: &'a Arc<[u8]>,
}

impl<'js> Decoder<'_, 'js> {
    fn document(&self, doc: Doc<'_>, exact: bool) -> Result<Object<'js>> {
        let prototype = if is_reference(doc) { &self.kernel.reference } else { &self.kernel.plain };
        let asked_again = exact || doc.iter().any(|e| e.tag() == 0x10 || is_index(e.name_bytes()));
        let object = if asked_again {
            let original = Original::new(self.bytes, doc, exact);
            Class::instance_proto(original, prototype.clone())?.into_inner()
        } else {
            Object::new_proto(self.ctx.clone(), Some(prototype))?
        };
        self.fill(object, doc)
    }
    fn fill(&self, object: Object<'js>, doc: Doc<'_>) -> Result<Object<'js>> {
        for element in doc.iter() {
            define(&object, element.name_bytes(), self.value(element.value())?)?;
        }
        Ok(object)
    }
    fn array(&self, doc: Doc<'_>) -> Result<Value<'js>> {
        let array = Array::new(self.ctx.clone())?;
        let mut holds_int32 = false;
        for (i, element) in doc.iter().enumerate() {
            holds_int32 |= element.tag() == 0x10;
            array.set(i, self.value(element.value())?)?;
        }
        if holds_int32 {
            let original =
                Class::instance_proto(Original::new(self.bytes, doc, false), self.kernel.plain.clone())?;
            define_hidden(array.as_object(), &self.kernel.original, original.into_value())?;
        }
        Ok(array.into_value())
    }
    fn value(&self, value: ValueRef<'_>) -> Result<Value<'js>> {
        let ctx = self.ctx;
        Ok(match value {
            // The engine's own conversion makes an integer of -0.
            ValueRef::Double(v) if v == 0.0 => Value::new_float(ctx.clone(), v),
            ValueRef::Double(v) => Value::new_number(ctx.clone(), v),
            ValueRef::Int32(v) => Value::new_int(ctx.clone(), v),
            ValueRef::String(v) | ValueRef::Symbol(v) => boxed(ctx, v)?,
            ValueRef::Document(doc) => self.document(doc, false)?.into_value(),
            ValueRef::Array(doc) => self.array(doc)?,
            ValueRef::Undefined => Value::new_undefined(ctx.clone()),
            ValueRef::Null => Value::new_null(ctx.clone()),
            ValueRef::Boolean(v) => Value::new_bool(ctx.clone(), v),
            ValueRef::DateTime(v) => date(ctx, v),
            ValueRef::Regex(pattern, options) => self.regex(pattern, options)?,
            ValueRef::Int64(v) => self.instance(Native::Long(v))?,
            ValueRef::Decimal128(v) => self.instance(Native::Decimal(v))?,
            ValueRef::ObjectId(v) => self.instance(Native::ObjectId(v))?,
            ValueRef::Binary(subtype, bytes) => {
                self.instance(Native::Binary(Binary { subtype, bytes: bytes.to_vec() }))?
            }
            ValueRef::Timestamp(v) => {
                // Numbers beyond 2^31 are JavaScript floats.
                let number = |v: u32| Value::new_number(ctx.clone(), v as f64);
                self.with(Native::Timestamp, &[("t", number(v.secs)), ("i", number(v.inc))])?
            }
            ValueRef::JavaScript(code) => self.with(Native::Code, &[("code", boxed(ctx, code)?)])?,
            ValueRef::JavaScriptWithScope(code, scope) => {
                let scope = self.document(scope, false)?.into_value();
                self.with(Native::Code, &[("code", boxed(ctx, code)?), ("scope", scope)])?
            }
            ValueRef::DbPointer(ns, id) => {
                let id = self.instance(Native::ObjectId(id))?;
                self.with(Native::Pointer, &[("ns", boxed(ctx, ns)?), ("id", id)])?
            }
            ValueRef::MinKey => self.kernel.min_key.clone().into_value(),
            ValueRef::MaxKey => self.kernel.max_key.clone().into_value(),
        })
    }
    fn instance(&self, native: Native) -> Result<Value<'js>> {
        self.kernel.instance(native).map(Object::into_value)
    }
    fn with(&self, native: Native, properties: &[(&str, Value<'js>)]) -> Result<Value<'js>> {
        let object = self.kernel.instance(native)?;
        for (name, value) in properties {
            define(&object, name.as_bytes(), value.clone())?;
        }
        Ok(object.into_value())
    }
    /// JavaScript has fewer options than BSON, and another syntax than PCRE: what it cannot say stands in a pattern
    /// that matches nothing it should not, with the original beside it.
    fn regex(&self, pattern: &str, options: &str) -> Result<Value<'js>> {
        let flags: String = options.chars().filter(|c| "ims".contains(*c)).collect();
        let source = if pattern.is_empty() { "(?:)" } else { pattern };
        let made: Result<Object> = self.kernel.regexp.construct((source, flags.as_str()));
        let (object, kept) = match made {
            Ok(object) => (object, flags.len() == options.len() && !pattern.is_empty()),
            Err(_) => {
                self.ctx.catch();
                (self.kernel.regexp.construct(("(?!)", ""))?, false)
            }
        };
        if !kept {
            let spelled = format!("{pattern}\0{options}");
            define_hidden(&object, &self.kernel.original, boxed(self.ctx, &spelled)?)?;
        }
        Ok(object.into_value())
    }
}

/// Whether the document is a DBRef: a text `$ref`, then `$id`.
fn is_reference(doc: Doc<'_>) -> bool {
    let mut elements = doc.iter();
    elements.next().is_some_and(|first| first.tag() == 0x02 && first.name_bytes() == b"$ref")
        && elements.next().is_some_and(|second| second.name_bytes() == b"$id")
}

fn date<'js>(ctx: &Ctx<'js>, millis: i64) -> Value<'js> {
    // SAFETY: a new value, owned by nobody else.
    unsafe { Value::from_raw(ctx.clone(), qjs::JS_NewDate(ctx.as_raw().as_ptr(), millis as f64)) }
}

/// Whether JavaScript would take the name for an array index and list it before all others.
pub(super) fn is_index(name: &[u8]) -> bool {
    let canonical = name == b"0" || (!name.is_empty() && name.len() <= 10 && name[0] != b'0');
    canonical && name.iter().all(u8::is_ascii_digit)
}

/// Defines an own property whatever the prototype has under that name, `__proto__` included.
pub(super) fn define<'js>(object: &Object<'js>, name: &[u8], value: Value<'js>) -> Result<()> {
    let ctx = object.ctx();
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the atom lives until it is freed; the value is duplicated because the engine takes it over.
    let status = unsafe {
        let atom = qjs::JS_NewAtomLen(raw, name.as_ptr().cast(), name.len() as _);
        let status = qjs::JS_DefinePropertyValue(
            raw,
            object.as_raw(),
            atom,
            qjs::JS_DupValue(raw, value.as_raw()),
            qjs::JS_PROP_C_W_E as _,
        );
        qjs::JS_FreeAtom(raw, atom);
        status
    };
    if status < 0 { Err(rquickjs::Error::Exception) } else { Ok(()) }
}

fn define_hidden<'js>(object: &Object<'js>, symbol: &rquickjs::Symbol<'js>, value: Value<'js>) -> Result<()> {
    object.prop(symbol.as_atom(), rquickjs::object::Property::from(value).writable().configurable())
}
