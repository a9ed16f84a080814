// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run SCENARIO FOLDER [KERNEL]`: runs a scenario, says what is going on.

use std::error::Error;
use std::path::Path;

use scenario::{Options, parse};
use vmlab::{Event, Lab, RunSpec};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, folder, rest @ ..] = arguments.as_slice() else {
        return Err("usage: run SCENARIO FOLDER [KERNEL]".into());
    };
    let options = Options {
        quick: true,
        set: Vec::new(),
    };
    let scenario = parse(file, &std::fs::read_to_string(file)?, &options)?;
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: scenario.per_boot,
        kernel: rest
            .first()
            .map_or(Ok(scenario.kernel), |kernel| kernel.parse())?,
        seed: scenario.seed,
        out_dir: Path::new(folder),
        jobs: None,
        timeout: None,
    };
    let output = vmlab::run(&Lab::find()?, &spec, &|event: &Event<'_>| {
        println!("{event:?}")
    })?;
    println!("{output:#?}");
    Ok(())
}
