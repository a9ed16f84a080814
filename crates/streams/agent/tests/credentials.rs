// SPDX-License-Identifier: MIT OR Apache-2.0
//! Certificates that cannot be used end the agent before it asks anybody.

use agent::{AgentArgs, Io, run};
use clap::Parser;
use rcgen::{CertificateParams, KeyPair};

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    args: AgentArgs,
}

#[test]
fn a_key_of_another_certificate_ends_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
    let certificate = params.self_signed(&own).unwrap().pem();
    std::fs::write(file("own.pem"), &certificate).unwrap();
    std::fs::write(file("other.key"), other.serialize_pem()).unwrap();
    for (key, expected) in [("other.key", "and its key: "), ("own.pem", "the key: ")] {
        let words = Words::parse_from([
            "agent",
            "--node=a",
            "--port=s=none",
            "--manager=https://127.0.0.1:9",
            &format!("--cert={}", file("own.pem")),
            &format!("--key={}", file(key)),
        ]);
        let (mut out, mut warn) = (Vec::new(), |_: &str| {});
        let mut io = Io {
            out: &mut out,
            note: &mut warn,
        };
        let error = run(&words.args, &mut io).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(out.is_empty());
    }
}
