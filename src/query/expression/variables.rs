//! Variables: names while parsing, a stack of values while evaluating.

use super::{Constants, Eval, FieldPath};
use crate::script::Scripts;
use document::fts::TextQuery;
use document::{Collation, Result, Timestamp, Value, bail};
use std::collections::HashMap;
use std::sync::Arc;

/// Where a variable's value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Now,
    ClusterTime,
    Remove,
    /// `$$KEEP`, `$$PRUNE` and `$$DESCEND` of `$redact`, as the strings it compares.
    Keep,
    Prune,
    Descend,
    UserRoles,
    SearchMeta,
    JsScope,
    IsMapReduce,
    /// A position of the stack.
    User(usize),
}

/// Names bound together, inside of those bound around them. Each is found at once, however many there are.
#[derive(Clone, Debug, Default)]
struct Bound {
    outer: Option<Arc<Bound>>,
    /// Positions of the stack that the outer names take.
    first: usize,
    names: Vec<String>,
    /// The newest position of each name.
    positions: HashMap<String, usize, foldhash::fast::RandomState>,
}

impl Bound {
    fn end(&self) -> usize {
        self.first + self.names.len()
    }
    fn push(&mut self, name: String) {
        self.positions.insert(name.clone(), self.end());
        self.names.push(name);
    }
}

/// The names in scope while parsing; a user variable's index is its position on the stack.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    bound: Option<Arc<Bound>>,
    /// A `$let` may rebind `CURRENT`; then this is the position of the newest binding.
    pub(super) in_redact: bool,
    /// The node keeps no cluster time: `$$CLUSTER_TIME` is refused when parsing.
    no_cluster_time: bool,
    /// `$$NOW` and `$$CLUSTER_TIME` are refused when parsing.
    timeless: bool,
    /// How the operators in this scope compare strings.
    collation: Collation,
    /// Whose score `{$meta: "textScore"}` is.
    text: Option<Arc<TextQuery>>,
    scripts: Scripts,
    constants: Constants,
}

impl Variables {
    /// Only the built-in variables.
    pub fn new() -> Variables {
        Variables::default()
    }
    /// Names given by the command's `let`, in the order their values are given to [`Vars::with_values`].
    pub fn with_names<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Variables {
        Variables::default().bind_all(names)
    }
    /// This scope with `name` added on top.
    pub fn bind(&self, name: &str) -> Variables {
        self.bind_all([name])
    }
    /// This scope with `names` added on top, in their order.
    pub fn bind_all<S: Into<String>>(&self, names: impl IntoIterator<Item = S>) -> Variables {
        let mut bound = Bound { outer: self.bound.clone(), first: self.len(), ..Bound::default() };
        names.into_iter().for_each(|name| bound.push(name.into()));
        match bound.names.is_empty() {
            true => self.clone(),
            false => Variables { bound: Some(Arc::new(bound)), ..self.clone() },
        }
    }
    /// Adds `name` on top of this scope itself.
    pub fn push(&mut self, name: &str) {
        Arc::make_mut(self.bound.get_or_insert_default()).push(name.to_string());
    }
    /// The scope of a `$redact` expression, which knows `$$DESCEND`, `$$PRUNE` and `$$KEEP`.
    pub fn for_redact(&self) -> Variables {
        Variables { in_redact: true, ..self.clone() }
    }
    pub fn with_collation(mut self, collation: &Collation) -> Variables {
        self.collation = collation.clone();
        self
    }
    /// Without `$$NOW` and `$$CLUSTER_TIME`, where they are not given.
    pub fn timeless(mut self, timeless: bool) -> Variables {
        self.timeless = timeless;
        self
    }
    /// Without `$$CLUSTER_TIME`, which only members of sets keep.
    pub fn clockless(mut self, clockless: bool) -> Variables {
        self.no_cluster_time = clockless;
        self
    }
    pub fn with_text(mut self, text: &Option<Arc<TextQuery>>) -> Variables {
        self.text = text.clone();
        self
    }
    pub fn with_scripts(mut self, scripts: &Scripts) -> Variables {
        self.scripts = scripts.clone();
        self
    }
    pub fn with_constants(mut self, constants: &Constants) -> Variables {
        self.constants = constants.clone();
        self
    }
    pub(super) fn constants(&self) -> &Constants {
        &self.constants
    }
    pub fn scripts(&self) -> &Scripts {
        &self.scripts
    }
    pub fn text(&self) -> Option<&Arc<TextQuery>> {
        self.text.as_ref()
    }
    pub fn collation(&self) -> &Collation {
        &self.collation
    }
    pub fn len(&self) -> usize {
        self.bound.as_ref().map_or(0, |bound| bound.end())
    }
    pub fn is_empty(&self) -> bool {
        self.bound.is_none()
    }
    /// What was bound together, the innermost first.
    fn scopes(&self) -> impl Iterator<Item = &Bound> {
        std::iter::successors(self.bound.as_deref(), |bound| bound.outer.as_deref())
    }
    /// All names, in the order of their positions.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.scopes().flat_map(|bound| bound.names.iter().rev().cloned()).collect();
        names.reverse();
        names
    }
    pub(super) fn find(&self, name: &str) -> Result<Slot> {
        if let Some(at) = self.scopes().find_map(|bound| bound.positions.get(name)) {
            return Ok(Slot::User(*at));
        }
        Ok(match name {
            "NOW" | "CLUSTER_TIME" if self.timeless => {
                bail!(51144, "Builtin variable '$${name}' is not available")
            }
            "NOW" => Slot::Now,
            "CLUSTER_TIME" if self.no_cluster_time => {
                bail!(10071200, "Builtin variable '$$CLUSTER_TIME' is not available")
            }
            "CLUSTER_TIME" => Slot::ClusterTime,
            "REMOVE" => Slot::Remove,
            "KEEP" if self.in_redact => Slot::Keep,
            "PRUNE" if self.in_redact => Slot::Prune,
            "DESCEND" if self.in_redact => Slot::Descend,
            "USER_ROLES" => Slot::UserRoles,
            "SEARCH_META" => Slot::SearchMeta,
            "JS_SCOPE" => Slot::JsScope,
            "IS_MR" => Slot::IsMapReduce,
            _ => bail!(17276, "Use of undefined variable: {name}"),
        })
    }
}

/// The values of variables during evaluation, and what `$$NOW` and `$$CLUSTER_TIME` answer.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    stack: Vec<Option<Value>>,
    current: Vec<Value>,
    /// Milliseconds since the epoch, fixed once per command.
    pub now_ms: i64,
    /// `None` on a node that keeps no cluster time.
    pub cluster_time: Option<Timestamp>,
    pub user_roles: Option<Value>,
    /// State of the generator behind `$rand`.
    pub seed: u64,
}

impl Vars {
    pub fn new(now_ms: i64) -> Vars {
        Vars { now_ms, ..Vars::default() }
    }
    /// Values of the command's `let`, in the order of [`Variables::with_names`]; undefined stands for missing. One for `CURRENT`
    /// takes the place of the document for every path of a field.
    pub fn with_values<'v>(now_ms: i64, values: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Vars {
        let mut vars = Vars::new(now_ms);
        for (name, value) in values {
            if name == "CURRENT" {
                vars.push_current(value.clone());
            }
            vars.push(Some(value.clone()).filter(|v| *v != Value::Undefined));
        }
        vars
    }
    /// Binds the next variable of the scope.
    pub fn push(&mut self, v: Option<Value>) {
        self.stack.push(v);
    }
    pub fn pop(&mut self) {
        self.stack.pop();
    }
    /// Unbinds the newest variable and gives its value back.
    pub fn take_last(&mut self) -> Option<Value> {
        self.stack.pop().flatten()
    }
    pub fn len(&self) -> usize {
        self.stack.len()
    }
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
    /// Back to an earlier depth.
    pub fn truncate(&mut self, depth: usize) {
        self.stack.truncate(depth);
    }
    pub fn values(&self) -> &[Option<Value>] {
        &self.stack
    }
    /// A number in [0, 1), from a splitmix64 sequence that starts at the seed.
    pub fn random(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    /// The rebound `$$CURRENT`, when it is not the root.
    pub fn current(&self) -> Option<&Value> {
        self.current.last()
    }
    pub fn push_current(&mut self, v: Value) {
        self.current.push(v);
    }
    pub fn pop_current(&mut self) -> Option<Value> {
        self.current.pop()
    }
}

impl From<&crate::QueryContext> for Variables {
    fn from(ctx: &crate::QueryContext) -> Variables {
        Variables::with_names(ctx.variables.keys())
            .clockless(ctx.shown_cluster_time().is_none())
            .timeless(ctx.timeless)
            .with_collation(&ctx.collation)
            .with_text(&ctx.text)
            .with_scripts(&ctx.scripts)
            .with_constants(&ctx.constants)
    }
}
impl From<&crate::QueryContext> for Vars {
    fn from(ctx: &crate::QueryContext) -> Vars {
        let mut vars = Vars::with_values(ctx.now_ms, ctx.variables.iter());
        vars.cluster_time = ctx.shown_cluster_time();
        vars.seed = ctx.seed;
        vars
    }
}

pub(super) fn eval(slot: Slot, path: &FieldPath, vars: &Vars) -> Eval {
    let computed = match slot {
        Slot::User(at) => {
            let Some(Some(v)) = vars.stack.get(at) else { return Ok(None) };
            return Ok(if path.is_empty() { Some(v.clone()) } else { path.get_in_value(v) });
        }
        Slot::Remove | Slot::SearchMeta | Slot::JsScope => return Ok(None),
        Slot::Now => Value::DateTime(vars.now_ms),
        Slot::ClusterTime => match vars.cluster_time {
            Some(t) => Value::Timestamp(t),
            None => bail!(10071200, "Builtin variable '$$CLUSTER_TIME' is not available"),
        },
        Slot::Keep => Value::from("keep"),
        Slot::Prune => Value::from("prune"),
        Slot::Descend => Value::from("descend"),
        Slot::UserRoles => vars.user_roles.clone().unwrap_or(Value::Array(Vec::new())),
        Slot::IsMapReduce => Value::Boolean(false),
    };
    Ok(if path.is_empty() { Some(computed) } else { path.get_in_value(&computed) })
}
