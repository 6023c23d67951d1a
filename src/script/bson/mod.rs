//! BSON and JavaScript: how documents become objects and objects documents, and the shell's functions over them.
//!
//! ```text
//! int32, double      number; which fields were int32 is kept beside the object (see `Original`)
//! int64, decimal,    instances of NumberLong, NumberDecimal, ObjectId, BinData, Timestamp ...: an opaque `Native`
//! ObjectId, ...      whose prototype is the kernel's class
//! date, regex, bool, null, undefined, string, symbol     what JavaScript has
//! code               Code; a function is written as code
//! ```
//!
//! A number of a test is written as a double, except where the document came from a server, held an int32 under that
//! name, and the number still is a whole one of that range: it is written as int32 again, as by the real shell.
//! A member whose value is `undefined` is written as BSON undefined, at every level.

mod decode;
mod encode;
mod functions;
mod native;
mod results;
mod scalars;
mod text;

pub use decode::{from_bson, value_from_bson};
pub use encode::{to_bson, to_bson_bounded, value_to_bson};
pub use native::{Kernel, Native, native_of};
pub use text::{boxed, text_of};

use rquickjs::{Ctx, Object};

/// The name under which the kernel finds its natives while it loads; gone once it has.
pub const NATIVE: &str = "__shellNatives";

pub fn register(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let native = Object::new(ctx.clone())?;
    scalars::register(ctx, &native)?;
    ctx.globals().set(NATIVE, native)?;
    functions::register(ctx)?;
    results::register(ctx)
}

/// The object the kernel's natives are members of; there is one until the kernel has been loaded.
pub fn natives<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    ctx.globals().get(NATIVE)
}
