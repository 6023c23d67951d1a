//! Ctrl-C and its relatives: the first asks every wait to end, so that everything is killed and reported in order.

use std::sync::atomic::{AtomicI32, Ordering};

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Notices SIGINT, SIGTERM and SIGHUP from now on. A second one ends the process at once.
pub(super) fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let handler = noticed as extern "C" fn(libc::c_int);
        // SAFETY: the handler only stores to an atomic and calls _exit, which are async-signal-safe.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

extern "C" fn noticed(signal: libc::c_int) {
    if SIGNAL.swap(signal, Ordering::SeqCst) != 0 {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Whether the run is to end.
pub(super) fn noticed_any() -> bool {
    SIGNAL.load(Ordering::SeqCst) != 0
}
