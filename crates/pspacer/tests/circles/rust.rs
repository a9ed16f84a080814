// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of a crate, and what each imports from the others.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Graph;
use super::tokens::tokens;

/// A module's place: the names from the crate's root down.
type Path = Vec<String>;

/// One name that a `use` brings in.
struct Import {
    /// The name in this file; `*` for all names.
    name: String,
    /// The path without `as`.
    path: Path,
    /// Whether the name is exported again.
    public: bool,
}

struct Module {
    file: String,
    imports: Vec<Import>,
    /// Paths in the code.
    paths: Vec<Path>,
    /// Words in the code, outside of `use`.
    words: BTreeSet<String>,
}

/// Every module of one root file.
type Tree = BTreeMap<Path, Module>;

/// Most re-exports that are followed, one after the other.
const STEPS_MAX: usize = 8;

/// Returns the imports between the Rust files among `files` (name and text).
pub fn rust_imports(files: &[(String, String)]) -> Graph {
    let texts: BTreeMap<&str, &str> = files
        .iter()
        .filter(|(name, _)| name.ends_with(".rs"))
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let mut graph = Graph::new();
    for root in texts.keys().filter(|name| is_root(name)) {
        let mut tree = Tree::new();
        add(&mut tree, vec![], root, &texts);
        for (at, module) in &tree {
            let targets = graph.entry(module.file.clone()).or_default();
            targets.extend(taken(&tree, at, module));
        }
    }
    graph
}

/// Returns whether cargo begins a crate with this file.
fn is_root(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [.., "src", "lib.rs" | "main.rs"] | [.., "build.rs"] => true,
        [.., "tests" | "examples" | "benches" | "bin" | "targets", _] => {
            parts.iter().filter(|part| **part == "tests").count() <= 1 && !parts.contains(&"src")
                || parts.contains(&"bin")
        }
        _ => false,
    }
}

/// Reads a module's file and those of its children.
fn add(tree: &mut Tree, at: Path, file: &str, texts: &BTreeMap<&str, &str>) {
    let Some(text) = texts.get(file) else {
        return;
    };
    let tokens = tokens(text);
    let (module, children) = read(file, &tokens);
    tree.insert(at.clone(), module);
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let folder = match name.strip_suffix(".rs").unwrap_or(name) {
        _ if at.is_empty() => folder.to_owned(),
        "mod" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    };
    for child in children {
        let files = [
            format!("{folder}/{child}.rs"),
            format!("{folder}/{child}/mod.rs"),
        ];
        if let Some(file) = files.iter().find(|file| texts.contains_key(file.as_str())) {
            let below = at.iter().cloned().chain([child]).collect();
            add(tree, below, file, texts);
        }
    }
}

/// Returns the contents of a file, and the names of the modules that it declares.
fn read(file: &str, tokens: &[String]) -> (Module, Vec<String>) {
    let mut module = Module {
        file: file.to_owned(),
        imports: vec![],
        paths: vec![],
        words: BTreeSet::new(),
    };
    let mut children = vec![];
    let word = |at: usize| tokens.get(at).map_or("", String::as_str);
    let mut at = 0;
    while at < tokens.len() {
        match (word(at), word(at + 2)) {
            ("mod", ";") => {
                children.push(word(at + 1).to_owned());
                at += 3;
            }
            ("use", _) => {
                let public = at > 0 && matches!(word(at - 1), "pub" | ")");
                at += 1;
                trees(tokens, &mut at, &[], public, &mut module.imports);
            }
            (first, _) if is_word(first) => {
                let mut path = vec![first.to_owned()];
                while word(at + 1) == "::" && is_word(word(at + 2)) {
                    path.push(word(at + 2).to_owned());
                    at += 2;
                }
                at += 1;
                module.words.insert(path[0].clone());
                if path.len() > 1 {
                    module.paths.push(path);
                }
            }
            _ => at += 1,
        }
    }
    (module, children)
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one tree of a `use` (`a::{b, c as d}`), up to its end.
fn trees(
    tokens: &[String],
    at: &mut usize,
    before: &[String],
    public: bool,
    out: &mut Vec<Import>,
) {
    let mut path = before.to_vec();
    let word = |at: usize| tokens.get(at).map_or(";", String::as_str);
    loop {
        match word(*at) {
            "{" => {
                *at += 1;
                while !matches!(word(*at), "}" | ";") {
                    trees(tokens, at, &path, public, out);
                    if word(*at) == "," {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "::" => *at += 1,
            ";" => return,
            name => {
                path.push(name.to_owned());
                *at += 1;
                if word(*at) == "::" {
                    continue;
                }
                let mut name = path.last().cloned().unwrap_or_default();
                if name == "self" && path.len() > 1 {
                    path.pop();
                    name = path.last().cloned().unwrap_or_default();
                }
                if word(*at) == "as" {
                    name = word(*at + 1).to_owned();
                    *at += 2;
                }
                out.push(Import { name, path, public });
                return;
            }
        }
    }
}

/// Returns the files from which a module imports something.
fn taken(tree: &Tree, at: &Path, module: &Module) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for import in &module.imports {
        if import.public && !module.words.contains(&import.name) {
            continue;
        }
        // The import of a module stands for the names below it that the code uses.
        if let Some((target, [])) = place(tree, at, &import.path) {
            if tree.contains_key(&target) {
                continue;
            }
        }
        found.extend(defined(tree, at, &import.path, 0));
    }
    for path in &module.paths {
        let own = module.imports.iter().find(|i| i.name == path[0]);
        let whole = match own {
            Some(import) => [&import.path[..], &path[1..]].concat(),
            None => path.clone(),
        };
        found.extend(defined(tree, at, &whole, 0));
    }
    found.remove(&module.file);
    found
}

/// Returns the module to which a path leads, and the rest of the path.
fn place<'p>(tree: &Tree, at: &Path, path: &'p [String]) -> Option<(Path, &'p [String])> {
    let (first, mut rest) = path.split_first()?;
    let mut here = match first.as_str() {
        "crate" => vec![],
        "self" => at.clone(),
        "super" => at.split_last()?.1.to_vec(),
        name => {
            let child: Path = at.iter().cloned().chain([name.to_owned()]).collect();
            tree.contains_key(&child).then_some(child)?
        }
    };
    while let Some((name, more)) = rest.split_first() {
        let next = match name.as_str() {
            "super" => here.split_last()?.1.to_vec(),
            name => here.iter().cloned().chain([name.to_owned()]).collect(),
        };
        if !tree.contains_key(&next) {
            break;
        }
        (here, rest) = (next, more);
    }
    Some((here, rest))
}

/// Returns the file that defines a path's item, if it is a file of this crate.
fn defined(tree: &Tree, at: &Path, path: &[String], steps: usize) -> Option<String> {
    let (target, rest) = place(tree, at, path)?;
    let module = tree.get(&target)?;
    let item = rest.first()?;
    let passed_on = module.imports.iter().find(|i| i.name == *item);
    let glob = || {
        let globs = module.imports.iter().filter(|i| i.public && i.name == "*");
        globs
            .filter(|_| !module.words.contains(item))
            .find_map(|glob| {
                let (_, parent) = glob.path.split_last()?;
                let named: Path = parent.iter().chain([item]).cloned().collect();
                defined(tree, &target, &named, steps + 1)
            })
    };
    match passed_on {
        _ if steps > STEPS_MAX => None,
        Some(import) => defined(tree, &target, &import.path, steps + 1),
        None => glob().or_else(|| Some(module.file.clone())),
    }
}
