// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read out of a file, and what is said about what cannot be.

use toml_reader::{Document, Key, Section, Taken, key};

const TEXT: &str = "name = \"x\"\nsize = \"é\"\ncount = 7\nlist = [1, 2]\non = true\n\
                    [[part]]\nname = \"a\"\n[[part]]\nname = \"b\"\n[one]\nk = 1.5\n";

const KEYS: &[Key] = &[
    key("name", "a name"),
    key("size", "a size"),
    key("count", "a number from 1 to 9"),
    key("list", "a list"),
    key("on", "true or false"),
    key("part", "an array of tables, [[part]]"),
    key("one", "a table, [one]"),
];
const PART: &[Key] = &[key("name", "a name")];

#[allow(clippy::unwrap_used)]
fn said<T: std::fmt::Debug>(result: Result<T, toml_reader::Error>) -> String {
    result.unwrap_err().to_string()
}

#[allow(clippy::unwrap_used)]
fn top<'d>(document: &'d Document<'d>) -> Section<'d> {
    document.top("the file", KEYS).check().unwrap()
}

#[test]
fn values_are_read() {
    let document = Document::parse("f", TEXT).unwrap();
    let top = top(&document);
    assert_eq!(top.require("name").unwrap().text(), Ok("x"));
    assert_eq!(top.number("count", 1..=9), Ok(Some(7)));
    assert_eq!(top.boolean("on"), Ok(Some(true)));
    assert_eq!(top.word("name", &[("w", 0), ("x", 1)]), Ok(Some(1)));
    assert_eq!(top.word("none", &[("w", 0)]), Ok(None));
    let list = top.require("list").unwrap().list().unwrap();
    let list: Vec<_> = list.iter().map(|item| item.scalar().unwrap()).collect();
    assert_eq!(list, ["1", "2"]);
    let one = top.table("one", "[one]").unwrap().unwrap();
    assert_eq!(one.get("k").unwrap().scalar(), Ok("1.5".to_owned()));
    let keys: Vec<_> = top.items().map(toml_reader::Item::key).collect();
    assert_eq!(keys, ["name", "size", "count", "list", "on", "part", "one"]);
}

#[test]
fn errors_name_line_key_value_and_what_was_expected() {
    let document = Document::parse("f", TEXT).unwrap();
    let top = top(&document);
    for (said, words) in [
        (
            said(top.number("count", 1..=6)),
            "f:3: `count` is 7, expected a number from 1 to 9",
        ),
        (
            said(top.boolean("list")),
            "f:4: `list` is a list, expected a list",
        ),
        (
            said(top.size("size", 1..=9)),
            "f:2: `size` is \"é\", expected a size",
        ),
        (
            said(top.word("name", &[("y", 0)])),
            "f:1: `name` is \"x\", expected a name; did you mean `y`?",
        ),
        (
            said(top.rate("on")),
            "f:5: `on` is true, expected true or false",
        ),
        (
            said(top.table("count", "[count]")),
            "f:3: `count` is 7, expected a table, [count]",
        ),
        (
            said(top.tables("list", "[[list]]", PART)),
            "f:4: `list` is 1, expected a list",
        ),
        (
            said(top.tables("part", "[[part]]", &KEYS[1..2])),
            "f:7: unknown key `name` in [[part]]; there is `size`",
        ),
        (
            said(top.require("rate")),
            "f:1: the file lacks `rate`, expected ",
        ),
    ] {
        assert_eq!(said, words);
    }
}

#[test]
fn a_value_is_used_once() {
    let document = Document::parse("", TEXT).unwrap();
    let mut taken = Taken::default();
    let items = top(&document).tables("part", "[[part]]", PART).unwrap();
    let items: Vec<_> = items
        .iter()
        .map(|part| part.require("name").unwrap())
        .collect();
    taken.insert(items[0], "a", "a name").unwrap();
    taken.insert(items[1], "b", "a name").unwrap();
    assert_eq!(
        said(taken.insert(items[1], "a", "a name")),
        "line 9: `name` is \"b\", expected a name not in use: line 7 has it already"
    );
}

#[test]
fn what_is_not_toml_has_its_line() {
    let said = said(Document::parse("f", "a = 1\nb = \n"));
    assert!(said.starts_with("f:2: not valid TOML: "), "{said}");
    let said = crate::said(Document::parse("f", "a = 1\nb = [\n"));
    assert!(said.starts_with("f:"), "{said}");
}

#[test]
fn a_value_of_the_command_line_has_its_option() {
    let document = Document::parse("f", TEXT).unwrap();
    let item = top(&document).set("noise.", "every", "1, 2");
    assert_eq!(
        item.fault("a time").to_string(),
        "--set noise.every: `every` is \"1, 2\", expected a time"
    );
    let elements = item.elements();
    let elements: Vec<_> = elements.iter().map(|item| item.text().unwrap()).collect();
    assert_eq!(elements, ["1", "2"]);
}
