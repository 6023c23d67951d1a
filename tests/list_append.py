"""Checks histories of transactions that read lists and append to them for snapshot isolation and for commits in real time.

Every appended value is unique, so a list that was read tells in which order its values were written, and by whom. From this
follow the dependencies between transactions (Adya; the method is that of Elle, Kingsbury and Alvaro, VLDB 2020):

    ww   the next value in a list was appended by the second
    wr   the second read a list that ends in a value of the first
    rw   the first read a list, the second appended the next value
    rt   the second began after the first was acknowledged (or: came later in the same session)

A history has snapshot isolation exactly if no cycle of dependencies is without two rw in a row (Cerone and Gotsman, PODC 2016).
Such cycles are searched for in two layers: an rw leads from the lower to the upper, from where only the others lead, and
back to the lower. Cycles of more than one rw in a row are write skew, which snapshot isolation allows.

A cycle is named by what it needs: G0 (ww), G1c (wr too), G-single (one rw), G-nonadjacent (several), with -realtime where
rt takes part. Beside cycles: G1a (read what was aborted), G1b (read what its writer overwrote), lost update, lost commit,
half commit, duplicates, reads that contradict one another, and reads that miss the transaction's own appends.
"""

import bisect
import itertools
from dataclasses import dataclass, field

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"


@dataclass
class Txn:
    """`ops` are `("append", key, value)` and `("r", key, [value, ...])`, in order; times are in seconds of one clock."""

    number: int
    session: int
    start: float
    ops: list = field(default_factory=list)
    end: float = float("inf")
    status: str = UNKNOWN

    def appended(self, key):
        return [op[2] for op in self.ops if op[0] == "append" and op[1] == key]

    def keys(self):
        return {op[1] for op in self.ops if op[0] == "append"}


@dataclass(frozen=True)
class Anomaly:
    name: str
    detail: str


class Check:
    """One history. `final` maps each key to its list after everything has ended."""

    def __init__(self, txns, final):
        self.txns = {t.number: t for t in txns}
        self.final = {key: list(values) for key, values in final.items()}
        self.writer = {op[2]: t.number for t in txns for op in t.ops if op[0] == "append"}
        self.found = []
        seen = set(itertools.chain.from_iterable(self.final.values()))
        # Whose outcome nobody heard has committed if something of it is there.
        self.committed = {
            t.number
            for t in txns
            if t.status == OK or (t.status == UNKNOWN and any(v in seen for k in t.keys() for v in t.appended(k)))
        }

    def note(self, name, detail):
        self.found.append(Anomaly(name, detail))

    def run(self, realtime):
        """All anomalies. `realtime`: "reads" where whatever begins later sees what was acknowledged; "commits" where only later
        commits do, and later reads of the same session."""
        self.check_final()
        for t in self.txns.values():
            if t.number in self.committed and t.status == OK:
                self.check_reads(t)
        graph = self.dependencies()
        self.check_lost_updates()
        self.check_cycles(graph, self.session_edges())
        if realtime == "reads":
            self.check_cycles(graph, self.realtime_edges(self.committed))
        else:
            writers = {n for n in self.committed if self.txns[n].keys()}
            without = {kind: edges for kind, edges in graph.items() if kind != "rw"}
            self.check_cycles(without, self.realtime_edges(writers))
        return self.found

    # What needs no graph.

    def check_final(self):
        for key, values in self.final.items():
            twice = {v for v in values if values.count(v) > 1} if len(set(values)) < len(values) else set()
            if twice:
                self.note("duplicate", f"{key} holds {sorted(twice)} twice")
        for t in self.txns.values():
            there = {v: v in self.final.get(k, []) for k in t.keys() for v in t.appended(k)}
            if t.status == OK and there and not any(there.values()):
                self.note("lost commit", f"{t.number} was acknowledged and nothing of {sorted(there)} is there")
            elif t.status != FAILED and there and len(set(there.values())) > 1:
                gone = sorted(v for v, is_there in there.items() if not is_there)
                self.note("half commit", f"{t.number} has {len(there)} appends, of which {gone} are missing")
            elif t.status == FAILED and any(there.values()):
                self.note("G1a", f"{t.number} was aborted, and {sorted(v for v in there if there[v])} are there")

    def check_reads(self, t):
        own = {}
        for op, key, value in t.ops:
            if op == "append":
                own.setdefault(key, []).append(value)
                continue
            mine = own.get(key, [])
            if mine and value[-len(mine) :] != mine:
                self.note("internal", f"{t.number} appended {mine} to {key} and read {value[-5:]}")
                continue
            outside = value[: len(value) - len(mine)]
            if outside != self.final.get(key, [])[: len(outside)]:
                self.check_contradiction(t, key, outside)
            for v in outside:
                if v in self.writer and self.txns[self.writer[v]].status == FAILED:
                    self.note("G1a", f"{t.number} read {v} of {self.writer[v]}, which was aborted")
            if outside:
                writer = self.writer.get(outside[-1])
                if writer is not None and writer != t.number and self.txns[writer].appended(key)[-1] != outside[-1]:
                    self.note("G1b", f"{t.number} read {outside[-1]} of {writer}, which then appended more to {key}")

    def check_contradiction(self, t, key, outside):
        foreign = [v for v in outside if v not in self.final.get(key, [])]
        # What was aborted, or lost, is said elsewhere; everything else is another order.
        if all(v in self.writer for v in foreign) and foreign:
            if any(self.txns[self.writer[v]].status == UNKNOWN for v in foreign):
                self.note("lost commit", f"{t.number} read {foreign} of {key}, which are gone")
        else:
            self.note("incompatible order", f"{t.number} read {outside[-5:]} of {key}")

    def check_lost_updates(self):
        """Two that committed appended to the same list that both had read."""
        read = {}
        for n in self.committed:
            t = self.txns[n]
            for key in t.keys():
                before = self.external_read(t, key)
                if before is None:
                    continue
                other = read.setdefault((key, tuple(before)), n)
                if other != n:
                    self.note("lost update", f"{other} and {n} both read {before[-3:]} of {key} and appended to it")

    @staticmethod
    def external_read(t, key):
        """What it read of a key before it appended anything to it."""
        for op, k, value in t.ops:
            if k == key:
                return value if op == "r" else None
        return None

    # The graph.

    def dependencies(self):
        graph = {"ww": set(), "wr": set(), "rw": set()}
        place = {}
        for key, values in self.final.items():
            writers = [self.writer.get(v) for v in values]
            place[key] = {v: i for i, v in enumerate(values)}
            for a, b in itertools.pairwise(writers):
                self.edge(graph, "ww", a, b)
        for n in self.committed:
            t = self.txns[n]
            if t.status != OK:
                continue
            own = set()
            for op, key, value in t.ops:
                if op == "append":
                    own.add(value)
                    continue
                outside = [v for v in value if v not in own]
                if outside:
                    self.edge(graph, "wr", self.writer.get(outside[-1]), n)
                at = place.get(key, {}).get(outside[-1], None) if outside else -1
                values = self.final.get(key, [])
                if at is not None and at + 1 < len(values):
                    self.edge(graph, "rw", n, self.writer.get(values[at + 1]))
        return graph

    def edge(self, graph, kind, a, b):
        if a is not None and b is not None and a != b and {a, b} <= self.committed:
            graph[kind].add((a, b))

    def session_edges(self):
        edges, last = [], {}
        for t in sorted(self.txns.values(), key=lambda t: t.start):
            if t.number in self.committed and t.status == OK:
                if t.session in last:
                    edges.append((last[t.session], t.number))
                last[t.session] = t.number
        return edges

    def realtime_edges(self, among):
        """Through a chain of moments, so that there are as many as transactions: `("at", i)` is the i-th acknowledgement."""
        chosen = [self.txns[n] for n in among]
        done = sorted((t.end, t.number) for t in chosen if t.status == OK)
        edges = [(number, ("at", i)) for i, (_, number) in enumerate(done)]
        edges += [(("at", i - 1), ("at", i)) for i in range(1, len(done))]
        ends = [end for end, _ in done]
        for t in chosen:
            i = bisect.bisect_left(ends, t.start) - 1
            if i >= 0:
                edges.append((("at", i), t.number))
        return edges

    def check_cycles(self, graph, order):
        layers = {}
        for kind, edges in [*graph.items(), ("rt", order)]:
            for a, b in edges:
                if kind == "rw":
                    layers.setdefault((a, 0), []).append(((b, 1), kind))
                else:
                    layers.setdefault((a, 0), []).append(((b, 0), kind))
                    layers.setdefault((a, 1), []).append(((b, 0), kind))
        known = {a.detail for a in self.found}
        for component in components(layers):
            cycle = shortest_cycle(layers, component)
            kinds = [kind for _, kind in cycle]
            rws = kinds.count("rw")
            name = {0: "G1c" if "wr" in kinds else "G0", 1: "G-single"}.get(rws, "G-nonadjacent")
            name += "-realtime" if "rt" in kinds else ""
            detail = " ".join(f"{node[0]} -{kind}->" for node, kind in cycle if isinstance(node[0], int))
            if detail not in known:
                self.note(name, detail)


def components(graph):
    """Tarjan's strongly connected components of more than one node, without recursion."""
    index, low, on_stack, stack, counter = {}, {}, set(), [], itertools.count()
    for root in list(graph):
        if root in index:
            continue
        work = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = next(counter)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for to, _ in edges:
                if to not in index:
                    index[to] = low[to] = next(counter)
                    stack.append(to)
                    on_stack.add(to)
                    work.append((to, iter(graph.get(to, ()))))
                    break
                if to in on_stack:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while not component or node not in component:
                        component.add(stack.pop())
                    on_stack -= component
                    if len(component) > 1:
                        yield component


def shortest_cycle(graph, component):
    """A shortest cycle through a few of the component's nodes, as `(node, kind of the edge that leaves it)`."""
    best = None
    for start in sorted(component, key=str)[:50]:
        before, queue = {}, [start]
        for node in queue:
            for to, kind in graph.get(node, ()):
                if to in component and to not in before:
                    before[to] = (node, kind)
                    queue.append(to)
            if start in before:
                break
        if start not in before:
            continue
        cycle, node = [], start
        while not cycle or node != start:
            node, kind = before[node]
            cycle.append((node, kind))
        cycle.reverse()
        if best is None or len(cycle) < len(best):
            best = cycle
    return best


def anomalies(txns, final, realtime="commits"):
    return Check(txns, final).run(realtime)
