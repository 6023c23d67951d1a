//! The ports that a test gives to its servers: each number once for all threads of the process.
//!
//! The runner names a block of ports that nobody else uses; without one, a random place below the ports of clients is
//! taken. A shell that a test started uses the upper half of the block, from a place of its own, so that it does not
//! begin where the test itself began.

use crate::{Shell, errors, natives::define};
use rquickjs::{Ctx, Result};
use std::net::{Ipv4Addr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set for shells that a test started.
pub const CHILD: &str = "JSTEST_CHILD";

const FALLBACK: (u32, u32) = (10_000, 19_999);

/// Hands out the ports of a range in turn, beginning somewhere in it.
pub struct Ports {
    low: u32,
    size: u32,
    first: u32,
    given: AtomicU32,
}

impl Ports {
    fn new(range: Option<&str>, is_child: bool, pid: u32) -> Ports {
        let parsed = range.and_then(|range| {
            let (low, high) = range.split_once('-')?;
            Some((low.trim().parse::<u32>().ok()?, high.trim().parse::<u32>().ok()?))
        });
        let (low, high) = parsed.filter(|(low, high)| low <= high).unwrap_or(FALLBACK);
        let size = high - low + 1;
        let first = match (parsed, is_child) {
            (Some(_), false) => 0,
            (Some(_), true) => size / 2 + pid.wrapping_mul(7) % (size - size / 2),
            (None, _) => pid.wrapping_mul(2_654_435_761) % size,
        };
        Ports { low, size, first, given: AtomicU32::new(0) }
    }

    /// A port not given before that nobody listens on; `None` when the range is used up.
    fn next(&self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        loop {
            let n = self.given.fetch_add(1, Ordering::Relaxed);
            if n >= self.size {
                return None;
            }
            let port = u16::try_from(self.low + (self.first + n) % self.size).ok()?;
            if is_free(port) {
                return Some(port);
            }
        }
    }
}

impl Default for Ports {
    fn default() -> Ports {
        let range = std::env::var("JSTEST_PORTS").ok();
        Ports::new(range.as_deref(), std::env::var_os(CHILD).is_some(), std::process::id())
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

/// `_allocatePort()`: of our own library.
pub fn register(ctx: &Ctx<'_>, shell: &Rc<Shell>) -> Result<()> {
    let of = shell.clone();
    define(ctx, "_allocatePort", move |ctx: Ctx<'_>| {
        let ports = &of.shared.programs.free_ports;
        let used_up = || format!("all {} ports from {} have been used", ports.size, ports.low);
        ports.next(is_free).ok_or_else(|| errors::throw(&ctx, &used_up()))
    })
}

#[cfg(test)]
mod tests {
    use super::Ports;

    fn all(ports: &Ports, busy: &[u16]) -> Vec<u16> {
        std::iter::from_fn(|| ports.next(|port| !busy.contains(&port))).collect()
    }

    #[test]
    fn every_free_port_is_given_once_from_the_lowest() {
        assert_eq!(all(&Ports::new(Some("20000-20003"), false, 5), &[20001]), [20000, 20002, 20003]);
    }

    #[test]
    fn child_begins_in_the_upper_half() {
        for pid in 0..100 {
            let ports = all(&Ports::new(Some("20000-20009"), true, pid), &[]);
            assert_eq!(ports.len(), 10);
            assert!(ports[0] >= 20005, "{ports:?}");
        }
    }

    #[test]
    fn without_a_range_a_place_depends_on_the_process() {
        let [a, b] = [1, 2].map(|pid| Ports::new(None, false, pid).next(|_| true).unwrap());
        assert!(a != b && (10_000..20_000).contains(&a) && (10_000..20_000).contains(&b));
    }
}
