// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as what a manager reads: bodies of requests, messages of other managers, records of a
//! store, a file of topology. A request that can be read is also decided over.

#![no_main]
#![allow(dead_code)]

// The pure files of the manager alone: the crate brings its service and its store with it.
#[path = "../../crates/manager/src/answer.rs"]
mod answer;
#[path = "../../crates/manager/src/api.rs"]
mod api;
#[path = "../../crates/manager/src/message.rs"]
mod message;
#[path = "../../crates/manager/src/record.rs"]
mod record;

use admission::{Ledger, admit};
use api::{InForceBody, LeaseBody, ReserveBody, read};
use libfuzzer_sys::fuzz_target;
use message::Envelope;
use record::Record;

const NET: &str = r#"
[[host]]
name = "a"
[[router]]
name = "r"
[[host]]
name = "b"
[[segment]]
name = "s"
medium = "shared"
rate = "100mbit"
members = ["a", "r"]
[[segment]]
name = "t"
medium = "switched"
rate = "1gbit"
mtu = 576
members = ["r", "b"]
"#;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(body) = read::<ReserveBody>(bytes) {
        if let Ok(net) = admission::read(NET) {
            let mut ledger = Ledger::default();
            if let Ok(plan) = admit(&net.topology, &ledger, &body.stream) {
                let inserted = ledger.insert(&net.topology, "x", plan.uses);
                assert!(inserted.is_ok());
            }
        }
    }
    let _ = read::<LeaseBody>(bytes);
    let _ = read::<InForceBody>(bytes);
    let _ = read::<Envelope>(bytes);
    for key in ["meta", "part/m/x", "reservation/x"] {
        let _ = Record::read(key, bytes);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = admission::read(text);
    }
});
