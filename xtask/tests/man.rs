// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/man/pspacer.1` is what the command line says.

use std::path::Path;

#[test]
fn the_manual_page_is_current() {
    let mut page = vec![];
    xtask::man::write(&mut page, pspacer::command()).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/man/pspacer.1");
    let kept = std::fs::read(kept).unwrap();
    assert!(
        page == kept,
        "docs/man/pspacer.1 is not what the command says: run \
         `cargo xtask man > docs/man/pspacer.1`"
    );
}
