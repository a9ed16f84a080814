// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the digests of the code that decides figures into the crate: a command knows what it is.

use std::io;
use std::path::Path;

#[path = "src/code_digest.rs"]
mod code_digest;
#[path = "../vmlab/src/source_text.rs"]
mod source_text;

fn main() -> io::Result<()> {
    let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    for (name, places) in code_digest::PARTS {
        let digest = code_digest::of(root, places)?;
        println!("cargo::rustc-env=MADE_OF_{name}={digest}");
        for place in *places {
            println!("cargo::rerun-if-changed={}", root.join(place).display());
        }
    }
    Ok(())
}
