//! What the process of scripts makes of code: how it is called, what it may emit, and what is left after it failed.

use super::scope::{Failure, Result, Session};
use crate::message::{Call, CallLimits};
use document::{Doc, DocBuf, Value, doc};
use std::time::{Duration, Instant};

const HEAP_BYTES: usize = 64 << 20;

/// Runs with the stack that a script process gives its engine.
fn scripted(test: impl FnOnce(&mut Session) + Send + 'static) {
    let worker = std::thread::Builder::new().stack_size(crate::STACK_BYTES);
    let run = move || test(&mut Session::new(HEAP_BYTES, "8.0").map_err(|f| f.message).unwrap());
    worker.spawn(run).unwrap().join().unwrap();
}

fn call(code: &str) -> Call<'_> {
    let limits = CallLimits { heap_bytes: HEAP_BYTES, time: Duration::from_secs(20) };
    Call { code, this: None, args: None, scope: None, emits: None, limits }
}

fn value(done: std::result::Result<Result, Failure>) -> Value {
    match done.map_err(|f| f.message).unwrap() {
        Result::Value(holder) => Doc::from_validated(&holder).get("").unwrap().to_value(),
        Result::Emitted(_) => panic!("emitted"),
    }
}

fn of(session: &mut Session, code: &str) -> Value {
    value(session.call(&call(code)))
}

#[test]
fn texts_of_functions_expressions_and_statements_are_called() {
    scripted(|s| {
        assert_eq!(of(s, "function() { return 1 + 1; }"), Value::Double(2.0));
        assert_eq!(of(s, "function() { return 3; };"), Value::Double(3.0));
        assert_eq!(of(s, "() => 4"), Value::Double(4.0));
        assert_eq!(of(s, "(1 + 2) * 3"), Value::Double(9.0));
        assert_eq!(of(s, "var a = 5; return a"), Value::Double(5.0));
        assert_eq!(of(s, "tojson({a: NumberLong(1)})"), Value::from("{ \"a\" : NumberLong(1) }"));
        assert_eq!(of(s, "Array.sum([1, 2, 3])"), Value::Double(6.0));
        assert_eq!(of(s, "hex_md5('a')"), Value::from("0cc175b9c0f1b6a831c399e269772661"));
        assert_eq!(of(s, "version()"), Value::from("8.0"));
    });
}

#[test]
fn a_function_among_comments_or_in_brackets_is_called() {
    scripted(|s| {
        let texts = [
            "/* c */ function() { return false; }",
            "// c\n  /* d */ function() { return false; }",
            "function() { return false; } // c",
            "function() { return false; }; /* c */",
            "// c\n() => false // d",
            "(function() { return false; })",
            "(/* c */ () => false);",
        ];
        for text in texts {
            assert_eq!(of(s, text), Value::Boolean(false), "{text}");
        }
        assert_eq!(of(s, "(function() { return 1; })() + (2)"), Value::Double(3.0));
        assert_eq!(of(s, "/* c */ 1 + 1"), Value::Double(2.0));
        assert_eq!(of(s, "// c"), Value::Undefined);
        assert!(s.call(&call("/* function() {}")).is_err());
    });
}

#[test]
fn this_arguments_scope_and_what_is_printed() {
    scripted(|s| {
        let this = doc! { "a": 7i32 }.to_doc_buf();
        let whole = value(s.call(&Call { this: Some(this.doc()), ..call("function() { return this; }") }));
        assert_eq!(whole, Value::Document(doc! { "a": 7i32 }), "an int32 stays one");
        let by_obj = value(s.call(&Call { this: Some(this.doc()), ..call("obj.a == this.a") }));
        assert_eq!(by_obj, Value::Boolean(true));
        let scope = doc! { "n": 10, "twice": (Value::JavaScript("function(x) { return 2 * x; }".into())) };
        let scope = scope.to_doc_buf();
        let scoped =
            Call { scope: Some(scope.doc()), ..call("function() { print('n is', n); return twice(n++); }") };
        assert_eq!(value(s.call(&scoped)), Value::Double(20.0));
        assert_eq!(value(s.call(&scoped)), Value::Double(22.0), "globals are the session's");
        assert_eq!(s.take_printed(), ["n is 10", "n is 11"]);
    });
}

#[test]
fn emits_are_collected_up_to_their_limit() {
    scripted(|s| {
        let this = doc! { "k": "x" }.to_doc_buf();
        let map = "function() { emit(this.k, 1); emit(undefined, {b: 2}); }";
        let emitted = s.call(&Call { this: Some(this.doc()), emits: Some(1000), ..call(map) });
        let Ok(Result::Emitted(pairs)) = emitted else { panic!("{emitted:?}") };
        let pairs: Vec<_> = pairs.into_iter().map(|p| DocBuf::from_validated(p).to_document()).collect();
        assert_eq!(pairs, [doc! { "k": "x", "v": 1.0 }, doc! { "k": (Value::Null), "v": { "b": 2.0 } }]);
        let much = "function() { for (;;) emit(1, 'xxxxxxxxxxxxxxxx'); }";
        let refused = s.call(&Call { this: Some(this.doc()), emits: Some(1000), ..call(much) }).unwrap_err();
        assert!(refused.message.contains("exceeds"), "{}", refused.message);
        assert!(s.call(&call("function() { emit(1, 2); }")).is_err(), "there is no emit elsewhere");
    });
}

#[test]
fn what_a_script_throws_or_never_finishes_leaves_the_session_usable() {
    scripted(|s| {
        let thrown = s.call(&call("function() { return nothing.here; }")).unwrap_err();
        assert!(thrown.message.starts_with("ReferenceError"), "{}", thrown.message);
        let syntax = s.call(&call("function() { return ]; }")).unwrap_err();
        assert!(syntax.message.starts_with("SyntaxError"), "{}", syntax.message);
        let limits = CallLimits { heap_bytes: HEAP_BYTES, time: Duration::from_millis(100) };
        let began = Instant::now();
        for endless in
            ["function() { for (;;); }", "sleep(100000)", "while (true) { try { for (;;); } catch (e) {} }"]
        {
            let late = s.call(&Call { limits, ..call(endless) }).unwrap_err();
            assert_eq!(late.message, "Interrupted by the host", "{endless}");
        }
        assert!(began.elapsed() < Duration::from_secs(10));
        let greedy = "function() { var a = []; for (;;) a.push(new Array(1000).fill('x')); }";
        assert!(s.call(&call(greedy)).unwrap_err().message.contains("out of memory"));
        assert!(s.call(&call("function f() { return f(); }")).is_err());
        assert_eq!(of(s, "1 + 1"), Value::Double(2.0));
    });
}
