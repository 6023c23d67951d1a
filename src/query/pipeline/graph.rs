//! `$graphLookup`: a search through another collection, breadth first, for each document.
//!
//! ```text
//! frontier ─> ask for documents whose connectToField is one of its values ─> found, each once (`_id` in `met`)
//!     ^                                                                        │
//!     └────────── values of connectFromField not asked for before (`asked`) <──┘
//! ```
//! Frontiers, both sets and what was found share one account. When it is over the limit all of them go to files but the
//! frontier that is being asked for: that stays where it is, so a large one goes to a file before. The indexes of the sets
//! stay too. What was found becomes one array at the end, so it has the limit of a document besides.

use super::account::{Kind, Use};
use super::host::{HostStage, Namespace, PipelineHost, Role};
use super::lookup::{Join, attach, equals_any, key, namespace_of, outer};
use super::seen::Seen;
use super::spill::Space;
use super::spool::{Place, Spool};
use super::stage::UNDERWAY_BYTES_MAX;
use super::stages::unwind::set;
use super::{Batch, Charge, Context, Flow, Run};
use crate::expression::{Expression, FieldPath};
use document::{Collation, DocBuf, DocWriter, Document, Result, Value, bail, doc, meter, number};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Graph {
    namespace: Namespace,
    start: Expression,
    from: FieldPath,
    to: FieldPath,
    into: FieldPath,
    depth_max: Option<i64>,
    depth_field: Option<FieldPath>,
    restrict: Option<Document>,
}

pub fn parse(name: &'static str, v: &Value, ctx: &Context) -> Result<HostStage> {
    let Value::Document(d) = v else {
        bail!(
            FAILED_TO_PARSE,
            "the $graphLookup stage specification must be an object, but found {}",
            v.type_name()
        );
    };
    let known = [
        "from",
        "startWith",
        "connectFromField",
        "connectToField",
        "as",
        "maxDepth",
        "depthField",
        "restrictSearchWithMatch",
    ];
    if let Some(bad) = d.keys().find(|k| !known.contains(k)) {
        bail!(40104, "Unknown argument to $graphLookup: {bad}");
    }
    let text = |field: &str| match d.get(field) {
        None => Ok(None),
        Some(Value::String(s)) => Ok(Some(FieldPath::parse(s)?)),
        Some(v) => bail!(40103, "expected string as argument for {field}, found: {}", v.type_name()),
    };
    let depth_max = match d.get("maxDepth") {
        None => None,
        Some(v) if !v.is_number() => bail!(40100, "maxDepth must be numeric, found type: {}", v.type_name()),
        Some(v) => match number::to_i64_exact(v) {
            Some(n) if n >= 0 => Some(n),
            Some(n) => bail!(40101, "maxDepth requires a nonnegative argument, found: {n}"),
            None => bail!(
                40102,
                "maxDepth could not be represented as a long long: {}",
                crate::expression::parse::show(v)
            ),
        },
    };
    let restrict = match d.get("restrictSearchWithMatch") {
        None => None,
        Some(Value::Document(m)) => {
            crate::matcher::Matcher::parse(m.to_doc_buf().doc(), &ctx.query)?;
            Some(m.clone())
        }
        Some(v) => bail!(40185, "restrictSearchWithMatch must be an object, found {}", v.type_name()),
    };
    let Some(from) = d.get("from") else {
        bail!(FAILED_TO_PARSE, "$graphLookup requires 'from' to be specified")
    };
    let namespace = namespace_of(name, from, ctx)?;
    let (Some(into), Some(start), Some(from), Some(to)) =
        (text("as")?, d.get("startWith"), text("connectFromField")?, text("connectToField")?)
    else {
        bail!(
            40105,
            "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified."
        );
    };
    let graph = Graph {
        namespace: namespace.clone(),
        start: Expression::parse(start, &ctx.scope())?,
        from,
        to,
        into,
        depth_max,
        depth_field: text("depthField")?,
        restrict,
    };
    Ok(HostStage {
        name,
        spec: v.clone(),
        namespace: Some(namespace),
        role: Role::Join,
        join: Some(Join::Graph(Arc::new(graph))),
    })
}

impl Graph {
    fn with_depth(&self, d: DocBuf, depth: i64) -> DocBuf {
        let Some(field) = &self.depth_field else { return d };
        let mut tree = d.to_document();
        set(&mut tree, field.parts(), Value::Int64(depth));
        tree.to_doc_buf()
    }
    /// What is asked for the documents that some values lead to.
    fn question(&self, values: Vec<Value>) -> Vec<Value> {
        let filter = equals_any(&self.to, values);
        let filter = match &self.restrict {
            Some(restrict) => doc! {"$and": [filter, restrict]},
            None => filter,
        };
        vec![Value::Document(doc! {"$match": filter})]
    }
}

/// A running `$graphLookup`.
pub struct RunningGraph {
    plan: Arc<Graph>,
    charge: Charge,
    space: Option<Arc<dyn Space>>,
}

impl RunningGraph {
    pub fn new(plan: Arc<Graph>, run: &Run) -> RunningGraph {
        let charge = run.charge(run.limits.graph_lookup).counted_as(Kind::GraphLookup);
        RunningGraph { plan, charge, space: run.space() }
    }
    pub fn used(&self) -> Use {
        self.charge.used
    }
    /// Searches for each document, as long as there is room for the result.
    pub async fn run(
        &mut self,
        input: &mut Batch,
        to: &mut Batch,
        host: &dyn PipelineHost,
        run: &Run,
    ) -> Result<Flow> {
        let mut vars = run.vars.clone();
        while !to.is_full()
            && let Some(d) = input.pop()
        {
            let start = self.plan.start.eval(d.doc(), &mut vars)?;
            let mut search = Search::new(self, &run.collation);
            search.go(start, host, run).await?;
            let found = search.found.into_vec()?;
            self.charge.set(0);
            to.push(attach(&d, &self.plan.into, &found.iter().collect::<Vec<&DocBuf>>())?)?;
        }
        Ok(Flow::Continue)
    }
}

/// What a member of a set takes beside its bytes.
const MEMBER_BYTES: usize = 48;
/// Bytes of values that are asked for at once.
const ASKED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The search for one document.
struct Search<'a> {
    graph: &'a mut RunningGraph,
    collation: &'a Collation,
    /// Values that were asked for, or stand in the frontier.
    asked: Seen,
    /// The `_id`s of what was found.
    met: Seen,
    found: Spool,
    found_bytes: usize,
    /// Values to ask for at the next depth, each the field `v` of a document.
    frontier: Spool,
    /// What the account was charged for them, and for those that are being asked for.
    frontier_bytes: usize,
    asking_bytes: usize,
}

impl<'a> Search<'a> {
    fn new(graph: &'a mut RunningGraph, collation: &'a Collation) -> Search<'a> {
        let (asked, met) = (Seen::default(), Seen::default());
        let (found, frontier) = (Spool::default(), Spool::default());
        let (found_bytes, frontier_bytes, asking_bytes) = (0, 0, 0);
        Search { graph, collation, asked, met, found, found_bytes, frontier, frontier_bytes, asking_bytes }
    }

    async fn go(&mut self, start: Option<Value>, host: &dyn PipelineHost, run: &Run) -> Result<()> {
        let plan = self.graph.plan.clone();
        self.expect(start)?;
        let mut depth = 0i64;
        while !self.frontier.is_empty() && plan.depth_max.is_none_or(|most| depth <= most) {
            let mut asking = self.take_frontier()?;
            let mut place = Place::default();
            while let Some(values) = some_values(&mut asking, &mut place)? {
                let mut source = host.run(&plan.namespace, plan.question(values), outer(run), run).await?;
                while let Some(batch) = source.next(host).await? {
                    for d in batch {
                        self.meet(&plan, d, depth)?;
                    }
                }
            }
            self.graph.charge.subtract(std::mem::take(&mut self.asking_bytes));
            depth += 1;
        }
        Ok(())
    }

    /// The frontier, to be asked for; it leaves half of the limit to what is found.
    fn take_frontier(&mut self) -> Result<Spool> {
        if self.frontier_bytes > self.graph.charge.limit() / 2
            && let Some(space) = &self.graph.space
        {
            let stored = self.frontier.spill(&**space)?;
            self.graph.charge.spilled_part(std::mem::take(&mut self.frontier_bytes), stored);
        }
        self.asking_bytes = std::mem::take(&mut self.frontier_bytes);
        Ok(std::mem::take(&mut self.frontier))
    }

    /// Adds the values of a field to the frontier, unless they were there before.
    fn expect(&mut self, v: Option<Value>) -> Result<()> {
        let values = match v {
            None => return Ok(()),
            Some(Value::Array(items)) => items,
            Some(v) => vec![v],
        };
        for v in values {
            meter::spend(1)?;
            let key = key(&v, self.collation);
            let bytes = key.len() + MEMBER_BYTES;
            if self.asked.insert(key)? {
                let d = DocWriter::build(|w| v.write(w, "v"));
                let waiting = self.frontier.push(d);
                self.frontier_bytes += waiting;
                self.graph.charge.add(bytes + waiting);
                self.relieve()?;
            }
        }
        Ok(())
    }

    /// Takes a document that was found, unless it was found before.
    fn meet(&mut self, plan: &Graph, d: DocBuf, depth: i64) -> Result<()> {
        meter::spend(8)?;
        let id = key(&d.get("_id").map_or(Value::Null, |v| v.to_value()), &Collation::SIMPLE);
        let bytes = id.len() + MEMBER_BYTES;
        if !self.met.insert(id)? {
            return Ok(());
        }
        self.graph.charge.add(bytes);
        self.expect(plan.from.get(d.doc()))?;
        let d = plan.with_depth(d, depth);
        self.found_bytes += d.bytes().len();
        if self.found_bytes > UNDERWAY_BYTES_MAX {
            bail!(BSON_OBJECT_TOO_LARGE, "$graphLookup found more than a document can hold");
        }
        self.graph.charge.add(self.found.push(d));
        self.relieve()
    }

    /// What is in memory, whatever else goes to files.
    fn lasting(&self) -> usize {
        self.asking_bytes + self.asked.index_bytes() + self.met.index_bytes()
    }

    /// Writes everything but what lasts to files when it is more than may be in memory.
    fn relieve(&mut self) -> Result<()> {
        if !self.graph.charge.is_over() {
            return Ok(());
        }
        let Some(space) = self.graph.space.clone() else {
            bail!(
                QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                "Exceeded memory limit for $graphLookup, but didn't allow external spilling; pass allowDiskUse:true to opt in"
            );
        };
        let lasting = self.lasting();
        if self.graph.charge.bytes() < lasting.saturating_mul(2) {
            // Where little more is to be had a file would be made of every value.
            return Ok(());
        }
        let sets = self.asked.spill(&*space)? + self.met.spill(&*space)?;
        let stored = sets + self.found.spill(&*space)? + self.frontier.spill(&*space)?;
        let charge = &mut self.graph.charge;
        charge.spilled_part(charge.bytes().saturating_sub(lasting), stored);
        self.frontier_bytes = 0;
        self.graph.charge.set(self.lasting());
        Ok(())
    }
}

/// The next values of a frontier, as many as are asked for at once.
fn some_values(asking: &mut Spool, place: &mut Place) -> Result<Option<Vec<Value>>> {
    let (mut values, mut bytes) = (Vec::new(), 0);
    while bytes < ASKED_BYTES_MAX
        && let Some(d) = asking.next(place)?
    {
        bytes += d.bytes().len();
        values.extend(d.get("v").map(|v| v.to_value()));
    }
    Ok(Some(values).filter(|values| !values.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::spill::tests::MemorySpace;

    /// A search that may hold so many bytes in memory.
    fn running(limit: usize) -> RunningGraph {
        let ctx = Context::new(Namespace::new("d", "c"), crate::QueryContext::at(0));
        let spec =
            doc! { "from": "c", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "r" };
        let stage = parse("$graphLookup", &spec.into(), &ctx).expect("a stage");
        let Some(Join::Graph(plan)) = stage.join else { panic!("another stage") };
        let mut run = Run::new(&ctx);
        run.limits.graph_lookup = limit;
        run.spill = Some(Arc::new(MemorySpace::default()));
        RunningGraph::new(plan, &run)
    }
    fn values(range: std::ops::Range<i32>, bytes: usize) -> Option<Value> {
        Some(Value::Array(range.map(|i| Value::from(format!("{i:0>bytes$}"))).collect()))
    }

    #[test]
    fn the_frontier_that_is_asked_for_stays_on_the_account_while_all_else_goes_to_files() {
        let mut graph = running(100_000);
        let mut search = Search::new(&mut graph, &Collation::SIMPLE);
        search.expect(values(0..100, 100)).unwrap();
        let asking = search.take_frontier().unwrap();
        let held = search.asking_bytes;
        assert!(!asking.has_spilled() && held > 100 * 100, "{held}");
        let mut least = usize::MAX;
        for i in 100..1000 {
            search.expect(values(i..i + 1, 100)).unwrap();
            least = least.min(search.graph.charge.bytes());
        }
        assert!(search.frontier.has_spilled() && least >= held, "{least} of {held}");
    }

    #[test]
    fn indexes_of_large_values_are_charged_and_no_file_is_made_of_few() {
        let mut graph = running(100_000);
        let mut search = Search::new(&mut graph, &Collation::SIMPLE);
        for i in 0..200 {
            search.expect(values(i..i + 1, 6000)).unwrap();
            let indexes = search.lasting();
            assert!(search.graph.charge.bytes() >= indexes, "{indexes}");
        }
        assert!(search.lasting() > 500_000);
        assert!((5..20).contains(&search.graph.used().spills), "{:?}", search.graph.used());
    }

    #[test]
    fn a_large_frontier_is_asked_for_from_a_file() {
        let mut graph = running(100_000);
        let mut search = Search::new(&mut graph, &Collation::SIMPLE);
        search.expect(values(0..290, 100)).unwrap();
        let (before, frontier) = (search.graph.charge.bytes(), search.frontier_bytes);
        assert!(frontier > 50_000 && search.graph.used().spills == 0, "{frontier}");
        let asking = search.take_frontier().unwrap();
        assert!(asking.has_spilled() && search.asking_bytes == 0);
        assert_eq!(search.graph.charge.bytes(), before - frontier);
    }
}
