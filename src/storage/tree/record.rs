//! A record: one allocation that holds a key and its value (or, in an inner node, a separator).
//!
//! ```text
//! stamp u64 | klen u32 | vlen u32 | key ... | value ...
//! ```
//!
//! A record is never written after it was made: a new value is a new record.

use super::line::Counters;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

#[repr(C)]
struct Header {
    stamp: u64,
    klen: u32,
    vlen: u32,
}

const HEADER: usize = size_of::<Header>();

/// A pointer to a record; whoever uses one knows why the record is still alive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordPtr(NonNull<Header>);

// SAFETY: records are immutable, so any thread may read one that is alive; when each is freed is argued in mod.rs.
unsafe impl Send for RecordPtr {}
// SAFETY: as above.
unsafe impl Sync for RecordPtr {}

fn layout(klen: u32, vlen: u32) -> Layout {
    let size = HEADER + klen as usize + vlen as usize;
    // Two u32 and 16 fit an isize on the 64-bit targets this runs on, so this cannot fail.
    Layout::from_size_align(size, align_of::<Header>()).expect("a record's size fits an isize")
}

impl RecordPtr {
    /// A new record; the value is the concatenation of `parts`. Key and value must each be below 4 GiB.
    pub(super) fn new(stamp: u64, key: &[u8], parts: &[&[u8]], counters: &Counters) -> RecordPtr {
        let klen = u32::try_from(key.len()).expect("a key is below 4 GiB");
        let vlen = parts.iter().map(|part| part.len()).sum::<usize>();
        let vlen = u32::try_from(vlen).expect("a value is below 4 GiB");
        let layout = layout(klen, vlen);
        // SAFETY: the layout has a size above zero; header, key and parts lie one behind the other inside it.
        unsafe {
            let Some(at) = NonNull::new(alloc(layout).cast::<Header>()) else { handle_alloc_error(layout) };
            at.write(Header { stamp, klen, vlen });
            let mut to = at.as_ptr().cast::<u8>().add(HEADER);
            to.copy_from_nonoverlapping(key.as_ptr(), key.len());
            to = to.add(key.len());
            for part in parts {
                to.copy_from_nonoverlapping(part.as_ptr(), part.len());
                to = to.add(part.len());
            }
            counters.add(layout.size());
            RecordPtr(at)
        }
    }

    /// # Safety
    /// The record is alive.
    pub(super) unsafe fn stamp(self) -> u64 {
        // SAFETY: alive, and immutable while alive.
        unsafe { self.0.as_ref().stamp }
    }

    /// # Safety
    /// The record stays alive for `'a`.
    #[inline]
    pub(super) unsafe fn key<'a>(self) -> &'a [u8] {
        // SAFETY: the key was written behind the header when the record was made.
        unsafe {
            let klen = self.0.as_ref().klen as usize;
            std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>().add(HEADER), klen)
        }
    }

    /// # Safety
    /// The record stays alive for `'a`.
    #[inline]
    pub(super) unsafe fn value<'a>(self) -> &'a [u8] {
        // SAFETY: the value was written behind the key when the record was made.
        unsafe {
            let Header { klen, vlen, .. } = *self.0.as_ref();
            std::slice::from_raw_parts(
                self.0.as_ptr().cast::<u8>().add(HEADER + klen as usize),
                vlen as usize,
            )
        }
    }

    /// Key and value.
    ///
    /// # Safety
    /// The record stays alive for `'a`.
    #[inline]
    pub(super) unsafe fn entry<'a>(self) -> (&'a [u8], &'a [u8]) {
        // SAFETY: promised by the caller.
        unsafe { (self.key(), self.value()) }
    }

    /// # Safety
    /// The record is alive.
    unsafe fn layout(self) -> Layout {
        // SAFETY: alive.
        let header = unsafe { self.0.as_ref() };
        layout(header.klen, header.vlen)
    }

    /// Bytes allocated for it.
    ///
    /// # Safety
    /// The record is alive.
    pub(super) unsafe fn size(self) -> usize {
        // SAFETY: alive.
        unsafe { self.layout() }.size()
    }

    /// # Safety
    /// The record is alive and nothing reaches it any more.
    pub(super) unsafe fn free(self, counters: &Counters) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe {
            let layout = self.layout();
            dealloc(self.0.as_ptr().cast(), layout);
            counters.sub(layout.size());
        }
    }

    /// Asks the processor to load the record's first line; harmless whatever the pointer is worth.
    #[inline]
    pub(super) fn prefetch(self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing that the program sees and cannot fault.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.0.as_ptr().cast());
        }
    }
}
