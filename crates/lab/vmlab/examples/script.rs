// SPDX-License-Identifier: MIT OR Apache-2.0
//! `script KERNEL FOLDER COMMAND [MODULE...]`: runs a command in a guest.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use vmlab::{Event, Lab, ScriptSpec};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kernel, folder, command, modules @ ..] = arguments.as_slice() else {
        return Err("usage: script KERNEL FOLDER COMMAND [MODULE...]".into());
    };
    let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
    let spec = ScriptSpec {
        kernel: kernel.parse()?,
        modules: &modules,
        files: &[],
        command,
        seed: 1,
        timeout: Duration::from_secs(600),
        out_dir: Path::new(folder),
    };
    let progress = |event: &Event<'_>| eprintln!("{event:?}");
    let output = vmlab::run_script(&Lab::find()?, &spec, &progress)?;
    print!("{}", output.output);
    println!("exit status {}", output.status);
    Ok(())
}
