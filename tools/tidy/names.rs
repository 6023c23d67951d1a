//! What pages, comments and scripts name exists: parameters, fail points, files. Nothing refers to papers that a reader of the
//! repository does not have.

use crate::{File, after, files, quoted, root, sources, word};
use node::{failpoints, parameters};

fn scripts() -> Vec<File> {
    let mut all = files(&["jstests"], ".js");
    all.extend(files(&["tests"], ".py"));
    all
}

fn pages() -> Vec<File> {
    files(&["README.md", "ARCHITECTURE.md", "jstests", "tests", "tools", "wire", "src"], ".md")
}

/// Names that scripts use to show what happens to names that do not exist.
fn is_meant_to_be_unknown(name: &str) -> bool {
    let name = name.to_lowercase();
    ["nosuch", "bogus", "unknown", "notthere", "nonexist"].iter().any(|part| name.contains(part))
}

#[test]
fn fail_points_that_scripts_and_pages_name_exist() {
    let mut unknown = Vec::new();
    for file in scripts().iter().chain(&pages()) {
        for rest in after(&file.text, "configureFailPoint") {
            let call =
                rest.strip_prefix('(').and_then(|args| args.split_once(", ")).map(|(_, second)| second);
            let field = rest.trim_start_matches(['"', '\'']).strip_prefix(": ");
            let Some(name) = field.or(call).and_then(quoted) else { continue };
            let is_name = !name.is_empty() && word(name) == name;
            if is_name && !failpoints::is_known(name) && !is_meant_to_be_unknown(name) {
                unknown.push(format!("{}: {name}", file.path));
            }
        }
    }
    assert!(unknown.is_empty(), "no such fail points: {unknown:#?}");
}

#[test]
fn parameters_that_scripts_and_pages_name_exist() {
    let mut unknown = Vec::new();
    for file in scripts().iter().chain(&pages()) {
        for field in
            ["setParameter: 1, ", "setParameter\": 1, \"", "setParameter: {", "parameter `", "setParameter "]
        {
            for rest in after(&file.text, field) {
                let name = word(rest.trim_start());
                let is_field =
                    rest.trim_start()[name.len()..].trim_start_matches('"').starts_with([':', '`', '=']);
                let camel = name.chars().any(|c| c.is_ascii_uppercase());
                if is_field && camel && parameters::find(name).is_none() && !is_meant_to_be_unknown(name) {
                    unknown.push(format!("{}: {name}", file.path));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "no such parameters: {unknown:#?}");
}

/// Whether a path as a page writes it (`node/write/unit.rs`, `shard/ddl/freeze`) leads to a file or a folder.
fn leads_somewhere(path: &str) -> bool {
    let places = [
        "",
        "src",
        "src/sharding",
        "src/node",
        "src/server",
        "src/query",
        "src/protocol",
        "src/storage",
        "src/document",
    ];
    let endings = ["", ".rs", ".md", ".js", ".py"];
    let exists = |place: &str, ending: &str| root().join(place).join(format!("{path}{ending}")).exists();
    places.iter().any(|place| endings.iter().any(|ending| exists(place, ending)))
}

#[test]
fn files_that_the_map_names_exist() {
    let rooms = [
        "document/",
        "query/",
        "storage/",
        "protocol/",
        "node/",
        "sharding/",
        "server/",
        "tools/",
        "tests/",
        "jstests/",
        "shard/",
        "wire/",
    ];
    let mut dangling = Vec::new();
    for file in files(&["ARCHITECTURE.md", "README.md"], ".md") {
        let words =
            file.text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '/' | '.' | '-'));
        for path in words.map(|w| w.trim_end_matches(['.', '/'])) {
            if rooms.iter().any(|room| path.starts_with(room)) && !leads_somewhere(path) {
                dangling.push(format!("{}: {path}", file.path));
            }
        }
    }
    assert!(dangling.is_empty(), "files that are not there: {dangling:#?}");
}

#[test]
fn nothing_refers_to_papers_outside_the_repository() {
    // Put together here, so that this file is no hit.
    let papers = [
        ["fa", "cts/"],
        ["fact ", "sheet"],
        ["DESIGN", ".md"],
        ["/wo", "rk/"],
        ["see", "d 00"],
        ["STYLE", ".md"],
        ["`fa", "cts`"],
    ];
    let papers: Vec<String> = papers.iter().map(|parts| parts.concat()).collect();
    let mut found = Vec::new();
    for file in sources().iter().chain(&pages()).chain(&scripts()) {
        for (number, line) in file.text.lines().enumerate() {
            if papers.iter().any(|paper| line.contains(paper)) {
                found.push(format!("{}:{}: {line}", file.path, number + 1));
            }
        }
    }
    assert!(found.is_empty(), "a reader of the repository has none of these: {found:#?}");
}
