//! Functions that a client wrote in JavaScript: what the language needs of whatever runs them.
//!
//! ```text
//! $where      Test: this is the document               -> true or false
//! $function   value of args                            -> value
//! mapReduce   map: this is the document, emit(k, v)    -> pairs; reduce(k, [v, ..]) -> value
//! ```
//! They run in another process ([`Engine`] is the way there). A command has one [`Session`], whose globals its functions
//! share; it begins with the first call.
//!
//! Invariant: no script runs under a latch: a call there fails with [`meter::OVERRUN`] and is made again without it.

use document::{Doc, DocBuf, Document, Result, Value, bail, meter};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// One function applied to values.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub code: &'a str,
    /// What `this` (and `obj`) is.
    pub this: Option<Doc<'a>>,
    /// The arguments, as an array's document.
    pub args: Option<Doc<'a>>,
    /// Global variables.
    pub scope: Option<Doc<'a>>,
    /// There is an `emit`, and what it collects is the reply.
    pub emits: bool,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Value(Value),
    /// `{k, v}` of each emit.
    Emitted(Vec<Value>),
}

/// Runs the functions of one command.
pub trait Session: Send + Sync {
    /// Blocks the thread until the function has returned.
    ///
    /// # Errors
    /// JSInterpreterFailure (139) or the function's own; whatever ends the operation.
    fn call(&self, call: &Call<'_>) -> Result<Reply>;
}

/// Where scripts run.
pub trait Engine: Send + Sync {
    fn session(&self) -> Arc<dyn Session>;
}

/// What a parser knows of scripts.
#[derive(Clone, Default)]
pub struct Scripts {
    engine: Option<Arc<dyn Engine>>,
    session: Arc<OnceLock<Arc<dyn Session>>>,
    /// The database's stored functions, for `$where`.
    pub stored: Option<Arc<DocBuf>>,
    /// The text is that of a mapReduce command, as this server divides it.
    pub map_reduce: bool,
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").field("enabled", &self.engine.is_some()).finish()
    }
}

impl Scripts {
    /// Those of one command; none where scripting is disabled.
    pub fn new(engine: Option<Arc<dyn Engine>>) -> Scripts {
        Scripts { engine, ..Scripts::default() }
    }
    /// Where they run, if they are enabled.
    pub fn engine(&self) -> Option<&Arc<dyn Engine>> {
        self.engine.as_ref()
    }
    fn session(&self) -> Option<&Arc<dyn Session>> {
        let engine = self.engine.as_ref()?;
        Some(self.session.get_or_init(|| engine.session()))
    }
    /// A function of `code`.
    ///
    /// # Errors
    /// 31264 where scripting is disabled.
    pub fn function(&self, code: &str, scope: Option<Arc<DocBuf>>) -> Result<Function> {
        let Some(session) = self.session() else {
            bail!(31264, "Cannot run server-side javascript without the javascript engine enabled");
        };
        Ok(Function { session: session.clone(), code: code.into(), scope })
    }
}

/// A function under the globals of its command.
#[derive(Clone)]
pub struct Function {
    session: Arc<dyn Session>,
    code: Arc<str>,
    scope: Option<Arc<DocBuf>>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.code).finish()
    }
}

impl Function {
    pub fn code(&self) -> &str {
        &self.code
    }
    fn run(&self, this: Option<Doc<'_>>, args: Option<Doc<'_>>, emits: bool) -> Result<Reply> {
        meter::aside()?;
        let scope = self.scope.as_ref().map(|s| s.doc());
        self.session.call(&Call { code: &self.code, this, args, scope, emits })
    }
    /// What it returns for these arguments.
    pub fn call(&self, args: Vec<Value>) -> Result<Value> {
        let holder = Value::Array(args).to_holder();
        let args = holder.doc().iter().next().and_then(|e| e.value().as_array());
        match self.run(None, args, false)? {
            Reply::Value(v) => Ok(v),
            Reply::Emitted(_) => Ok(Value::Undefined),
        }
    }
    /// Whether it returns something true for a document.
    pub fn test(&self, this: Doc<'_>) -> Result<bool> {
        match self.run(Some(this), None, false)? {
            Reply::Value(v) => Ok(is_true(&v)),
            Reply::Emitted(_) => Ok(false),
        }
    }
    /// What it emits for a document, as `{k, v}`.
    pub fn emitted(&self, this: Doc<'_>) -> Result<Vec<Value>> {
        match self.run(Some(this), None, true)? {
            Reply::Emitted(pairs) => Ok(pairs),
            Reply::Value(_) => Ok(Vec::new()),
        }
    }
}

/// Truth as JavaScript has it.
fn is_true(v: &Value) -> bool {
    match v {
        Value::Null | Value::Undefined => false,
        Value::Boolean(b) => *b,
        Value::Double(d) => *d != 0.0 && !d.is_nan(),
        Value::Int32(n) => *n != 0,
        Value::String(s) => !s.is_empty(),
        _ => true,
    }
}

/// The text of a function: a string, or code without a scope.
pub fn code_of(v: &Value) -> Option<&str> {
    match v {
        Value::String(s) | Value::JavaScript(s) => Some(s),
        _ => None,
    }
}

/// The functions of a database's `system.js`, by name, from its documents.
pub fn stored_functions(documents: impl Iterator<Item = Document>) -> Document {
    let mut out = Document::new();
    for d in documents {
        if let (Some(name), Some(value)) = (d.get_str("_id"), d.get("value")) {
            out.push(name, value.clone());
        }
    }
    out
}
