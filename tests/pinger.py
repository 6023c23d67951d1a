"""Asks a server for a ping every 50 ms until its input ends, in a process of its own: what other threads compute would count otherwise.

Prints how many seconds each took, one a line.
"""

import select
import sys
import time

from raw_connection import Raw


def main(port):
    with Raw(port, 60) as raw:
        while not select.select([sys.stdin], [], [], 0.05)[0]:
            began = time.monotonic()
            assert raw.ask({"ping": 1})["ok"] == 1
            print(time.monotonic() - began)


if __name__ == "__main__":
    main(int(sys.argv[1]))
