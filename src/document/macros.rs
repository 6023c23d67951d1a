//! `doc! { "a": 1, "b": { "c": [1, "x"] } }` builds a [`crate::Document`]; values go through `Into<Value>`.

#[macro_export]
macro_rules! doc {
    () => { $crate::Document::new() };
    ( $($rest:tt)+ ) => {{
        let mut d = $crate::Document::new();
        $crate::doc_fields!(d; $($rest)+);
        d
    }};
}
#[doc(hidden)]
#[macro_export]
macro_rules! doc_fields {
    ($d:ident;) => {};
    ($d:ident; $k:tt : { $($v:tt)* } , $($rest:tt)*) => { $d.push($k, $crate::doc!{$($v)*}); $crate::doc_fields!($d; $($rest)*); };
    ($d:ident; $k:tt : { $($v:tt)* }) => { $d.push($k, $crate::doc!{$($v)*}); };
    ($d:ident; $k:tt : [ $($v:tt)* ] , $($rest:tt)*) => { $d.push($k, $crate::array![$($v)*]); $crate::doc_fields!($d; $($rest)*); };
    ($d:ident; $k:tt : [ $($v:tt)* ]) => { $d.push($k, $crate::array![$($v)*]); };
    ($d:ident; $k:tt : $v:expr , $($rest:tt)*) => { $d.push($k, $v); $crate::doc_fields!($d; $($rest)*); };
    ($d:ident; $k:tt : $v:expr) => { $d.push($k, $v); };
}
/// `array![1, {"a": 1}, [2]]` builds a `Value::Array`.
#[macro_export]
macro_rules! array {
    () => { $crate::Value::Array(Vec::new()) };
    ( $($rest:tt)+ ) => {{
        #[allow(clippy::vec_init_then_push)]
        let items = {
            let mut a: Vec<$crate::Value> = Vec::new();
            $crate::array_items!(a; $($rest)+);
            a
        };
        $crate::Value::Array(items)
    }};
}
#[doc(hidden)]
#[macro_export]
macro_rules! array_items {
    ($a:ident;) => {};
    ($a:ident; { $($v:tt)* } , $($rest:tt)*) => { $a.push($crate::Value::from($crate::doc!{$($v)*})); $crate::array_items!($a; $($rest)*); };
    ($a:ident; { $($v:tt)* }) => { $a.push($crate::Value::from($crate::doc!{$($v)*})); };
    ($a:ident; [ $($v:tt)* ] , $($rest:tt)*) => { $a.push($crate::array![$($v)*]); $crate::array_items!($a; $($rest)*); };
    ($a:ident; [ $($v:tt)* ]) => { $a.push($crate::array![$($v)*]); };
    ($a:ident; $v:expr , $($rest:tt)*) => { $a.push($crate::Value::from($v)); $crate::array_items!($a; $($rest)*); };
    ($a:ident; $v:expr) => { $a.push($crate::Value::from($v)); };
}
