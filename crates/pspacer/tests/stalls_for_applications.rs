// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/use/stalls-for-applications.md explains each cause: three sentences, and what to change.

use std::fs;

use stall::Cause;

use crate::common::root;

/// The name of a cause and the text of its section.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("\n### `").skip(1);
    let parts = parts.map(|part| part.split("\n## ").next().unwrap_or(part));
    parts.filter_map(|part| part.split_once("`\n")).collect()
}

#[test]
fn each_cause_has_its_section() {
    let page = fs::read_to_string(root().join("docs/use/stalls-for-applications.md")).unwrap();
    let sections = sections(&page);
    for cause in Cause::ALL {
        let name = serde_json::to_value(cause).unwrap();
        let of = sections
            .iter()
            .filter(|(own, _)| Some(*own) == name.as_str());
        let texts: Vec<_> = of.map(|(_, text)| *text).collect();
        assert_eq!(texts.len(), 1, "{name} has one section");
        let (means, change) = texts[0].split_once("\n**Change:** ").unwrap();
        let ends = |text: &str| text.replace('\n', " ").matches(". ").count();
        assert_eq!(
            ends(&format!("{means} ")),
            3,
            "{name}: three sentences: {means}"
        );
        assert!(change.trim_end().ends_with('.'), "{name}: {change}");
    }
    assert_eq!(sections.len(), Cause::ALL.len(), "and no other has one");
}
