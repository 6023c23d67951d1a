"""Wall clocks that a test can move, one for each process: a small library that stands before the system's `clock_gettime`.

The process reads how far its clock is moved, in seconds, from a mapped file, so a test moves it while the process runs. Only the
wall clock moves: what measures time goes on as before, as on a machine whose clock is set.
"""

import struct
import subprocess

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec *);
static volatile int64_t *moved;
__attribute__((constructor)) static void start(void) {
    real = dlsym(RTLD_NEXT, "clock_gettime");
    int file = open(getenv("MOVED_CLOCK"), O_RDONLY);
    void *found = mmap(0, sizeof *moved, PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || found == MAP_FAILED) abort();
    moved = found;
}
int clock_gettime(clockid_t id, struct timespec *at) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, at);
    if (moved && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += *moved;
    return done;
}
"""


class MovedClock:
    """The wall clock of the processes that are started with `environment`."""

    def __init__(self, workdir, name):
        library = workdir / "moved_clock.so"
        if not library.exists():
            build = ["cc", "-x", "c", "-shared", "-fPIC", "-O1", "-o", library, "-", "-ldl"]
            subprocess.run(build, input=SOURCE, text=True, check=True)
        self.file = workdir / f"{name}.clock"
        self.move(0)
        self.environment = {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(self.file)}

    def move(self, seconds):
        """How far the clock is ahead of the machine's."""
        mode = "r+b" if self.file.exists() else "w+b"
        with open(self.file, mode) as f:
            f.write(struct.pack("=q", seconds))
