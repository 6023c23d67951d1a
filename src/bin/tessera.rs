//! `tessera`: the cluster in one process, and the two servers under one name.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    std::process::exit(server::up::cli());
}
