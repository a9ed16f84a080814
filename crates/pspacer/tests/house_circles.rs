// SPDX-License-Identifier: MIT OR Apache-2.0
//! No files of the source tree import or call each other in a circle.

use crate::circles::{Graph, c_calls, c_includes, circles, rust_imports};
use crate::house::{files, report};

/// Returns the circles, each as the names of its files.
fn circle_names(graph: &Graph) -> Vec<String> {
    let found = circles(graph).into_iter();
    found.map(|circle| circle.join(" ")).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let rust = rust_imports(&files());
    assert!(rust.values().flatten().count() > 500, "imports are found");
    report("circles of Rust files", &circle_names(&rust));
    let c = c_includes(&files(), &["core/include", "core", "uapi", "bpf"]);
    assert!(c.values().flatten().count() > 50, "includes are found");
    report("circles of C files", &circle_names(&c));
}

/// Folders in C whose files call only down, and the functions that are called from below nevertheless, which
/// nothing else may be. kernel/ is one unit, in which the compiler wants what is called to stand before.
const CALLS_UP: &[(&str, &[&str])] = &[
    ("core/src/", &[]),
    ("bpf/", &[]),
    ("lab/agent/", &[]),
    ("lab/fuzz/", &[]),
    ("lab/send/", &[]),
    // A port that several cables enter asks each of them for what is due, and each may have to settle another.
    ("lab/wire/", &["wire_choose_until"]),
    ("tc/", &[]),
];

#[test]
fn no_c_files_call_each_other_in_a_circle() {
    let files: Vec<_> = files()
        .into_iter()
        .filter(|(name, _)| !name.ends_with("-test.c"))
        .collect();
    let mut calls = 0;
    for (folder, up) in CALLS_UP {
        let graph = c_calls(&files, folder, up);
        calls += graph.values().flatten().count();
        report("circles of calls", &circle_names(&graph));
        for function in *up {
            let others: Vec<_> = up
                .iter()
                .copied()
                .filter(|other| other != function)
                .collect();
            let found = circles(&c_calls(&files, folder, &others));
            assert!(
                !found.is_empty(),
                "{folder}: {function} is not called from below"
            );
        }
    }
    assert!(calls > 50, "{calls} calls are found");
}

#[test]
fn a_circle_of_calls_is_found() {
    let first = (
        "x/a.c",
        "static int f(int a,\n\t     int b)\n{\n\treturn a;\n}\n\nint g(void)\n{\n\treturn h(1);\n}\n",
    );
    let found = |second: &str, up: &[&str]| {
        let files = [
            first,
            ("x/b.c", second),
            ("y/b.c", "int h(int a)\n{\n\treturn g();\n}\n"),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        circles(&c_calls(&files, "x/", up)).len()
    };
    let calls = "int h(int a)\n{\n\treturn a ? g () : 0;\n}\n";
    assert_eq!(found(calls, &[]), 1);
    assert_eq!(found(calls, &["g"]), 0);
    for harmless in [
        "int g(void);\n\nint h(int a)\n{\n\treturn a;\n}\n",
        "int h(int a)\n{\n\t/* g(a) */\n\treturn k(\"g(\\\"\", 'a'); // g()\n}\n",
        "int g(void)\n{\n\treturn 1;\n}\n\nint h(int a)\n{\n\treturn g();\n}\n",
    ] {
        assert_eq!(found(harmless, &[]), 0, "{harmless}");
    }
}

#[test]
fn a_circle_of_files_is_found() {
    let named = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = all.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned()));
        owned.collect()
    };
    let rust = |all: &[(&str, &str)]| circles(&rust_imports(&named(all)));
    let pair = ["x/src/a.rs".to_owned(), "x/src/b.rs".to_owned()].to_vec();
    let lib = ("x/src/lib.rs", "mod a;\nmod b;\npub use a::A;");
    // The circle is made by `use`, by a path in the code, or by a name that lib.rs exports.
    let a = ("x/src/a.rs", "use crate::b::B;\npub struct A(B);");
    for b in [
        "use crate::a::A;\npub struct B(Box<A>);",
        "pub struct B(Box<crate::a::A>);",
        "use crate::{A as Other};\npub struct B(Box<Other>);",
        "use super::a;\npub struct B(Box<a::A>);",
    ] {
        assert_eq!(
            rust(&[lib, a, ("x/src/b.rs", b)]),
            std::slice::from_ref(&pair),
            "{b}"
        );
    }
    for b in [
        "pub struct B;",
        "// crate::a::A\npub const B: &str = \"crate::a::A\";",
        "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
    ] {
        assert!(rust(&[lib, a, ("x/src/b.rs", b)]).is_empty(), "{b}");
    }
    // A parent uses its child, which uses the parent.
    let child = ("x/src/a.rs", "use super::Shared;\npub struct A(Shared);");
    let uses = (
        "x/src/lib.rs",
        "mod a;\nuse a::A;\npub struct Shared;\nfn f(_: A) {}",
    );
    assert_eq!(rust(&[uses, child]).len(), 1);
    let declares = ("x/src/lib.rs", "mod a;\npub use a::A;\npub struct Shared;");
    assert!(rust(&[declares, child]).is_empty());
    // C finds a header beside the file and below a folder.
    let c = |all: &[(&str, &str)]| circles(&c_includes(&named(all), &["core/include"])).len();
    let heap = ("core/src/heap.h", "#include <pace/wheel.h>\n");
    let wheel = (
        "core/include/pace/wheel.h",
        "#include \"../../src/heap.h\"\n",
    );
    assert_eq!(c(&[heap, wheel]), 1);
    assert_eq!(
        c(&[heap, ("core/include/pace/wheel.h", "#include <stdint.h>\n")]),
        0
    );
}
