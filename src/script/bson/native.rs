//! The opaque part of the shell's values, and where their prototypes are.

use document::{Binary, Decimal128, Doc, ObjectId};
use rquickjs::function::Constructor;
use rquickjs::{Class, Ctx, JsLifetime, Object, Value};
use std::ops::Range;
use std::sync::Arc;

/// What an instance of one of the kernel's classes holds. The last three hold nothing: what they say is in properties
/// of the instance, as the real shell's are.
#[derive(Clone, Debug, PartialEq)]
pub enum Native {
    Long(i64),
    Int(i32),
    Decimal(Decimal128),
    ObjectId(ObjectId),
    Binary(Binary),
    Timestamp,
    Code,
    Pointer,
}

/// Makes classes of types that hold nothing of a context and that scripts cannot construct.
#[macro_export]
macro_rules! opaque_class {
    ($($class:ident)*) => { $(
        impl<'js> rquickjs::class::Trace<'js> for $class {
            fn trace<'a>(&self, _: rquickjs::class::Tracer<'a, 'js>) {}
        }
        // SAFETY: nothing in it has the lifetime of a context.
        unsafe impl<'js> rquickjs::JsLifetime<'js> for $class {
            type Changed<'to> = $class;
        }
        impl<'js> rquickjs::class::JsClass<'js> for $class {
            const NAME: &'static str = stringify!($class);
            type Mutable = rquickjs::class::Readable;
            fn constructor(
                _: &rquickjs::Ctx<'js>,
            ) -> rquickjs::Result<Option<rquickjs::function::Constructor<'js>>> {
                Ok(None)
            }
        }
    )* };
}
crate::opaque_class! { Native Original }

/// The bytes an object was decoded from, kept when writing the object must ask them: for fields that were int32 and
/// for names like integers, which JavaScript puts first whatever their order was.
///
/// A document is decoded into an instance of this class with `Object.prototype`, so that nothing shows; an array
/// carries one in a hidden property.
#[derive(Clone)]
pub(super) struct Original {
    bytes: Arc<[u8]>,
    range: Range<usize>,
    /// Written back as it is, whatever became of the object: for documents no object can say, such as `{a: 1, a: 2}`.
    pub exact: bool,
}

impl Original {
    /// `doc` must lie within `bytes`.
    pub(super) fn new(bytes: &Arc<[u8]>, doc: Doc<'_>, exact: bool) -> Original {
        let start = doc.bytes().as_ptr() as usize - bytes.as_ptr() as usize;
        Original { bytes: bytes.clone(), range: start..start + doc.bytes().len(), exact }
    }
    pub(super) fn doc(&self) -> Doc<'_> {
        Doc::from_validated(self.bytes.get(self.range.clone()).unwrap_or(&document::raw::EMPTY))
    }
}

/// The kernel's prototypes, by class, and its two singletons.
pub struct Kernel<'js> {
    pub long: Object<'js>,
    pub int: Object<'js>,
    pub decimal: Object<'js>,
    pub object_id: Object<'js>,
    pub binary: Object<'js>,
    pub timestamp: Object<'js>,
    pub code: Object<'js>,
    pub pointer: Object<'js>,
    pub reference: Object<'js>,
    pub min_key: Object<'js>,
    pub max_key: Object<'js>,
    pub regexp: Constructor<'js>,
    pub plain: Object<'js>,
    /// The symbol under which arrays carry their [`Original`].
    pub original: rquickjs::Symbol<'js>,
}

// SAFETY: the struct is generic over exactly the context's lifetime.
unsafe impl<'js> JsLifetime<'js> for Kernel<'js> {
    type Changed<'to> = Kernel<'to>;
}

impl<'js> Kernel<'js> {
    /// Reads the prototypes from the object the kernel hands over when its classes are defined.
    pub fn install(ctx: &Ctx<'js>, from: &Object<'js>) -> rquickjs::Result<()> {
        let globals = ctx.globals();
        let kernel = Kernel {
            long: from.get("NumberLong")?,
            int: from.get("NumberInt")?,
            decimal: from.get("NumberDecimal")?,
            object_id: from.get("ObjectId")?,
            binary: from.get("BinData")?,
            timestamp: from.get("Timestamp")?,
            code: from.get("Code")?,
            pointer: from.get("DBPointer")?,
            reference: from.get("DBRef")?,
            min_key: from.get("MinKey")?,
            max_key: from.get("MaxKey")?,
            regexp: globals.get("RegExp")?,
            plain: globals.get::<_, Object>("Object")?.get("prototype")?,
            original: rquickjs::Symbol::with_description(ctx.clone(), "original")?,
        };
        ctx.store_userdata(kernel).map(|_| ()).map_err(|_| rquickjs::Error::Unknown)
    }
    /// The kernel of a context; an error before it is loaded.
    pub fn of<'a>(ctx: &'a Ctx<'js>) -> rquickjs::Result<rquickjs::runtime::UserDataGuard<'a, Kernel<'js>>> {
        ctx.userdata::<Kernel<'js>>().ok_or_else(|| crate::errors::throw(ctx, "the kernel is not loaded yet"))
    }
    fn prototype_of(&self, native: &Native) -> &Object<'js> {
        match native {
            Native::Long(_) => &self.long,
            Native::Int(_) => &self.int,
            Native::Decimal(_) => &self.decimal,
            Native::ObjectId(_) => &self.object_id,
            Native::Binary(_) => &self.binary,
            Native::Timestamp => &self.timestamp,
            Native::Code => &self.code,
            Native::Pointer => &self.pointer,
        }
    }
    /// A new instance of the class that `native` belongs to.
    pub fn instance(&self, native: Native) -> rquickjs::Result<Object<'js>> {
        let prototype = self.prototype_of(&native).clone();
        Class::instance_proto(native, prototype).map(Class::into_inner)
    }
}

/// What the value holds, when it is an instance of one of the kernel's classes.
pub fn native_of(value: &Value<'_>) -> Option<Native> {
    let class = value.as_object()?.as_class::<Native>()?;
    class.try_borrow().ok().map(|native| native.clone())
}
