//! `Thread` and `CountDownLatch`: functions of a test that run side by side, each in a runtime of its own.
//!
//! ```text
//! new Thread(fn, ...args)   init: the function by its source, the arguments and TestData as BSON
//! start()                   a thread with an Engine of its own calls the function and runs its promises to the end
//! join(), returnData()      the result comes back as BSON; both throw what ended the function, hasFailed() tells
//! ```
//! Nothing is shared between runtimes. Functions inside of the arguments (the methods of a latch, say) travel as code
//! and are made functions again on the other side.

mod job;
mod latch;
#[cfg(test)]
mod tests;

use crate::{Shell, engine};
use job::Job;
use parking_lot::Mutex;
use rquickjs::Ctx;
use std::rc::Rc;
use std::sync::Arc;

/// The threads and latches of the process; both are known to JavaScript by their place in these lists.
#[derive(Default)]
pub struct Threads {
    jobs: Mutex<Vec<Arc<Job>>>,
    latches: Mutex<Vec<Arc<latch::Latch>>>,
}

impl Threads {
    fn add_job(&self, job: Job) -> usize {
        let mut jobs = self.jobs.lock();
        jobs.push(Arc::new(job));
        jobs.len() - 1
    }
    fn job(&self, place: usize) -> Option<Arc<Job>> {
        self.jobs.lock().get(place).cloned()
    }
    fn add_latch(&self, count: u64) -> usize {
        let mut latches = self.latches.lock();
        latches.push(Arc::new(latch::Latch::new(count)));
        latches.len() - 1
    }
    fn latch(&self, place: usize) -> Option<Arc<latch::Latch>> {
        self.latches.lock().get(place).cloned()
    }
}

pub fn register(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> rquickjs::Result<()> {
    job::register(ctx, shell)?;
    latch::register(ctx, shell)?;
    engine::evaluate(ctx, "thread.js", include_str!("thread/thread.js")).map(|_| ())
}
