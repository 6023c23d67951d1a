//! `tessera`: the cluster in one process, and both servers, chosen by the name it is started under.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: document::meter::Counted<mimalloc::MiMalloc> = document::meter::Counted(mimalloc::MiMalloc);

/// Unmaps what this thread keeps of freed memory, and what no thread does; the allocator does so by itself only now and then.
#[cfg(feature = "mimalloc")]
fn give_back() {
    // SAFETY: may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

fn main() {
    #[cfg(feature = "mimalloc")]
    server::memory::give_back_by(give_back);
    std::process::exit(server::process::by_name(std::env::args_os().collect()));
}
