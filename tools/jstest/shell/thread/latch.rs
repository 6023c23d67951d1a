//! `CountDownLatch`: threads wait until others have counted it down to zero.

use crate::natives::number;
use crate::{Shell, errors};
use parking_lot::{Condvar, Mutex};
use rquickjs::{Ctx, Function, Object, Result, Value};
use std::rc::Rc;
use std::sync::Arc;

pub(super) struct Latch {
    count: Mutex<u64>,
    zero: Condvar,
}

impl Latch {
    pub(super) fn new(count: u64) -> Latch {
        Latch { count: Mutex::new(count), zero: Condvar::new() }
    }
    fn wait(&self) {
        let mut count = self.count.lock();
        while *count > 0 {
            self.zero.wait(&mut count);
        }
    }
    fn count_down(&self) {
        let mut count = self.count.lock();
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.zero.notify_all();
        }
    }
    fn count(&self) -> u64 {
        *self.count.lock()
    }
}

/// `CountDownLatch._new(count)` and the operations on what it returns.
pub(super) fn register(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    let class = Object::new(ctx.clone())?;
    let of = shell.clone();
    let new = move |ctx: Ctx<'_>, count: Value<'_>| -> Result<usize> {
        let count = if count.is_undefined() { f64::NAN } else { number(&count)? };
        if count.is_nan() || count < 0.0 {
            return Err(errors::throw_code(
                &ctx,
                9,
                "the count of a CountDownLatch must be a number and not negative",
            ));
        }
        Ok(of.shared.threads.add_latch(count as u64))
    };
    class.set("_new", Function::new(ctx.clone(), new)?)?;
    let of = shell.clone();
    let wait = move |ctx: Ctx<'_>, place: Value<'_>| find(&ctx, &of, &place).map(|latch| latch.wait());
    class.set("_await", Function::new(ctx.clone(), wait)?)?;
    let of = shell.clone();
    let count_down =
        move |ctx: Ctx<'_>, place: Value<'_>| find(&ctx, &of, &place).map(|latch| latch.count_down());
    class.set("_countDown", Function::new(ctx.clone(), count_down)?)?;
    let of = shell.clone();
    let count =
        move |ctx: Ctx<'_>, place: Value<'_>| find(&ctx, &of, &place).map(|latch| latch.count() as f64);
    class.set("_getCount", Function::new(ctx.clone(), count)?)?;
    ctx.globals().set("CountDownLatch", class)
}

fn find(ctx: &Ctx<'_>, shell: &Shell, place: &Value<'_>) -> Result<Arc<Latch>> {
    let latch = shell.shared.threads.latch(number(place)? as usize);
    latch.ok_or_else(|| errors::throw_code(ctx, 9, "not a valid CountDownLatch descriptor"))
}
