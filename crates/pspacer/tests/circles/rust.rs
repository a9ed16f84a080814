// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of a crate, and what each imports from the others.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

use super::Graph;

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

/// What a file has, without its code for tests.
#[derive(Default)]
struct Module {
    file: String,
    imports: Vec<Import>,
    /// Paths in the code.
    paths: Vec<Path>,
    /// First names of paths, outside of `use`.
    names: BTreeSet<String>,
    /// Modules that it declares and that have a file of their own.
    children: Vec<String>,
}

/// Every module of one root file.
type Tree = BTreeMap<Path, Module>;

/// Most re-exports that are followed, one after the other.
const STEPS_MAX: usize = 8;

/// Returns the imports between the Rust files among `files` (name and text).
///
/// # Panics
/// If a file is no Rust.
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
    let mut module = Module {
        file: file.to_owned(),
        ..Module::default()
    };
    let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    module.visit_file(&parsed);
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let folder = match name.strip_suffix(".rs").unwrap_or(name) {
        _ if at.is_empty() => folder.to_owned(),
        "mod" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    };
    for child in &module.children {
        let files = [
            format!("{folder}/{child}.rs"),
            format!("{folder}/{child}/mod.rs"),
        ];
        if let Some(file) = files.iter().find(|file| texts.contains_key(file.as_str())) {
            let below = at.iter().cloned().chain([child.clone()]).collect();
            add(tree, below, file, texts);
        }
    }
    tree.insert(at, module);
}

/// Returns whether an item is compiled for tests only.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl Module {
    fn add_path(&mut self, path: Path) {
        self.names.insert(path[0].clone());
        if path.len() > 1 {
            self.paths.push(path);
        }
    }

    fn add_import(&mut self, tree: &UseTree, before: &[String], public: bool) {
        let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
        let (name, path) = match tree {
            UseTree::Path(tree) => {
                return self.add_import(&tree.tree, &with(&tree.ident), public);
            }
            UseTree::Group(group) => {
                let add = |tree| self.add_import(tree, before, public);
                return group.items.iter().for_each(add);
            }
            UseTree::Glob(_) => ("*".to_owned(), with(&"*")),
            UseTree::Name(tree) if tree.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.to_vec())
            }
            UseTree::Name(tree) => (tree.ident.to_string(), with(&tree.ident)),
            UseTree::Rename(tree) if tree.ident == "self" => {
                (tree.rename.to_string(), before.to_vec())
            }
            UseTree::Rename(tree) => (tree.rename.to_string(), with(&tree.ident)),
        };
        self.imports.push(Import { name, path, public });
    }

    /// Takes the paths of a macro's tokens, which are no syntax that is known.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Path = vec![];
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.add_path(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                token => {
                    if !path.is_empty() {
                        self.add_path(std::mem::take(&mut path));
                    }
                    colons = 0;
                    if let TokenTree::Group(group) = token {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        if !path.is_empty() {
            self.add_path(path);
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_none() {
            self.children.push(item.ident.to_string());
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add_import(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.add_path(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.add_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

/// Returns the files from which a module imports something.
fn taken(tree: &Tree, at: &Path, module: &Module) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for import in &module.imports {
        if import.public && !module.names.contains(&import.name) {
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
            .filter(|_| !module.names.contains(item))
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
