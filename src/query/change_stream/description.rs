//! `updateDescription`: what the difference in an update's log entry says, in paths.

use document::{Document, Value, doc};

/// `{updatedFields, removedFields, truncatedArrays, disambiguatedPaths?}` of a `{$v: 2, diff}`'s inner document.
pub fn update_description(diff: &Document, disambiguated: bool) -> Document {
    let mut found = Found::default();
    found.document(diff, &mut Path::default());
    let mut out = doc! {
        "updatedFields": found.updated,
        "removedFields": Value::Array(found.removed),
        "truncatedArrays": Value::Array(found.truncated),
    };
    if disambiguated {
        out.push("disambiguatedPaths", found.ambiguous);
    }
    out
}

/// A path as it is shown, and as its components where the text leaves them in doubt.
#[derive(Default)]
struct Path {
    components: Vec<Value>,
}

impl Path {
    fn text(&self) -> String {
        let show = |v: &Value| v.as_str().map_or_else(|| v.as_i64().unwrap_or(0).to_string(), str::to_string);
        self.components.iter().map(show).collect::<Vec<_>>().join(".")
    }
    /// A name with a dot, or one that looks like an array's index.
    fn is_ambiguous(&self) -> bool {
        let doubtful = |s: &str| s.contains('.') || (!s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()));
        self.components.iter().filter_map(Value::as_str).any(doubtful)
    }
}

#[derive(Default)]
struct Found {
    updated: Document,
    removed: Vec<Value>,
    truncated: Vec<Value>,
    ambiguous: Document,
}

impl Found {
    fn at(&mut self, path: &mut Path, component: Value, note: impl FnOnce(&mut Found, &mut Path)) {
        path.components.push(component);
        note(self, path);
        path.components.pop();
    }
    /// The path's text, noted when it is ambiguous.
    fn name(&mut self, path: &Path) -> String {
        let text = path.text();
        if path.is_ambiguous() {
            self.ambiguous.push(text.as_str(), Value::Array(path.components.clone()));
        }
        text
    }
    fn updated(&mut self, path: &Path, value: &Value) {
        let name = self.name(path);
        self.updated.push(name, value.clone());
    }
    fn nested(&mut self, diff: &Document, path: &mut Path) {
        match diff.contains_key("a") {
            true => self.array(diff, path),
            false => self.document(diff, path),
        }
    }

    fn document(&mut self, diff: &Document, path: &mut Path) {
        for (section, fields) in diff.iter() {
            let Value::Document(fields) = fields else { continue };
            match section {
                "d" => fields.keys().for_each(|field| {
                    self.at(path, field.into(), |found, path| {
                        let name = found.name(path);
                        found.removed.push(name.into());
                    });
                }),
                "u" | "i" => fields.iter().for_each(|(field, value)| {
                    self.at(path, field.into(), |found, path| found.updated(path, value));
                }),
                _ => {
                    let field = section.strip_prefix('s').unwrap_or(section);
                    self.at(path, field.into(), |found, path| found.nested(fields, path));
                }
            }
        }
    }

    fn array(&mut self, diff: &Document, path: &mut Path) {
        for (section, value) in diff.iter() {
            let index = || section[1..].parse::<i32>().unwrap_or(0).into();
            match (section, value) {
                ("a", _) => {}
                ("l", size) => {
                    let field = self.name(path);
                    self.truncated.push(doc! { "field": field, "newSize": size.clone() }.into());
                }
                (_, Value::Document(inner)) if section.starts_with('s') => {
                    self.at(path, index(), |found, path| found.nested(inner, path));
                }
                (_, value) if section.starts_with('u') => {
                    self.at(path, index(), |found, path| found.updated(path, value));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::array;

    fn described(old: Document, new: Document) -> Document {
        let delta = document::delta::compute(old.to_doc_buf().doc(), new.to_doc_buf().doc()).to_document();
        update_description(delta.get_document("diff").unwrap(), true)
    }

    #[test]
    fn paths_of_every_section() {
        let filler = "a text that makes the difference the shorter record of the two";
        let old =
            doc! { "_id": 1, "a": 1, "gone": 2, "d": { "x": 1, "f": filler }, "l": [1, 2, 3, 4, filler, 6] };
        let new =
            doc! { "_id": 1, "a": 5, "d": { "x": 2, "f": filler }, "l": [1, 2, 3, 4, filler], "n": true };
        let expected = doc! {
            "updatedFields": { "a": 5, "n": true, "d.x": 2 },
            "removedFields": ["gone"],
            "truncatedArrays": [{ "field": "l", "newSize": 5 }],
            "disambiguatedPaths": {},
        };
        assert_eq!(described(old, new), expected);
    }

    #[test]
    fn doubtful_paths_are_given_by_components() {
        let filler = "a text that makes the difference the shorter record of the two";
        let old = doc! { "o": { "0": { "x": 1, "f": filler } }, "l": [{ "x": 1, "f": filler }] };
        let new = doc! { "o": { "0": { "x": 2, "f": filler } }, "l": [{ "x": 2, "f": filler }], "a.b": 1 };
        let shown = described(old, new);
        assert_eq!(shown.get_document("updatedFields"), Some(&doc! { "a.b": 1, "o.0.x": 2, "l.0.x": 2 }));
        let paths = doc! { "a.b": (array!["a.b"]), "o.0.x": (array!["o", "0", "x"]) };
        assert_eq!(shown.get_document("disambiguatedPaths"), Some(&paths));
    }
}
