//! What cannot be asked for through the crate `runtime`: the numbers that the standard library takes from the system for the
//! seeds of hash maps, and tokio for the order of `select!` (by way of such a map). This program has a `getrandom` of its own,
//! which they find instead of the C library's, and which counts on from the seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// 0: the system's numbers.
static STATE: AtomicU64 = AtomicU64::new(0);

/// From now on this process gets its "random" bytes from `seed`.
pub(crate) fn fix(seed: u64) {
    STATE.store(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, Ordering::SeqCst);
}

/// # Safety
/// That of the C library's function: `buffer` has room for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut libc::c_void, length: usize, flags: libc::c_uint) -> isize {
    if STATE.load(Ordering::SeqCst) == 0 {
        // SAFETY: the caller's promise, passed on.
        return unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) as isize };
    }
    for i in 0..length {
        let state = STATE.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        // SAFETY: `i` is below `length`.
        unsafe { buffer.cast::<u8>().add(i).write((mixed >> 32) as u8) };
    }
    length as isize
}
