// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may do what: files of callers, roles, hosts and quotas.

use std::collections::BTreeSet;

use admission::{LinkBytes, Refusal};
use manager::access::{self, Role};
use manager_proto::answer::{Answer, Caller, Failure};
use manager_proto::api::render;
use manager_proto::quota::Quota;

/// SHA-256 of the empty token.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const S: u64 = 1_000_000_000;

fn entry(more: &str) -> String {
    format!("[[access]]\nname = \"me\"\ntoken_sha256 = \"{EMPTY}\"\n{more}\n")
}

/// The caller of a file with one entry.
fn caller(more: &str) -> Option<Caller> {
    let access = access::read(&entry(more)).unwrap_or_else(|error| panic!("{error}"));
    access.identify(Some(""), None).unwrap().caller()
}

fn names(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_file_says_who_may_do_what() {
    assert_eq!(caller("role = \"operator\""), Some(Caller::operator("me")));
    assert_eq!(caller("role = \"talker\""), Some(Caller::talker("me")));
    assert_eq!(caller("role = \"manager\""), None);
    let agent = caller("role = \"agent\"\nhosts = [\"camera\", \"r1\"]");
    assert_eq!(agent, Some(Caller::agent("me", names(&["camera", "r1"]))));
    let talker = caller(
        "role = \"talker\"\nhosts = [\"camera\"]\nstreams = 3\nbytes = 20000\nlease = \"10m\"",
    );
    let expected = Caller {
        hosts: Some(names(&["camera"])),
        quota: Quota {
            streams: Some(3),
            bytes: Some(20_000),
            lease_ns: Some(600 * S),
        },
        ..Caller::talker("me")
    };
    assert_eq!(talker, Some(expected));
    let open = access::Access::Open.identify(None, None).unwrap();
    assert_eq!(open.role, Role::Operator);
    assert_eq!(open.caller(), Some(Caller::operator("local")));
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    for (more, words) in [
        (
            "role = \"king\"",
            "line 4: `role` is \"king\", expected \"talker\", \"operator\", \"manager\" or \"agent\"",
        ),
        ("role = \"agent\"", "line 1: [[access]] lacks `hosts`"),
        (
            "role = \"agent\"\nhosts = []",
            "line 5: `hosts` is a list, expected a list of one name or more",
        ),
        (
            "role = \"talker\"\nhosts = \"camera\"",
            "line 5: `hosts` is \"camera\", expected a list of one name or more",
        ),
        (
            "role = \"talker\"\nhosts = [\"camera\", \"..\"]",
            "line 5: `hosts` is \"..\", expected a list of one name or more",
        ),
        (
            "role = \"operator\"\nhosts = [\"camera\"]",
            "line 5: `hosts` is a list, expected the role \"talker\" or \"agent\" beside it",
        ),
        (
            "role = \"agent\"\nhosts = [\"a\"]\nstreams = 1",
            "line 6: `streams` is 1, expected the role \"talker\" beside it",
        ),
        (
            "role = \"operator\"\nbytes = 1",
            "line 5: `bytes` is 1, expected the role \"talker\" beside it",
        ),
        (
            "role = \"manager\"\nlease = \"1m\"",
            "line 5: `lease` is \"1m\", expected the role \"talker\" beside it",
        ),
        (
            "role = \"talker\"\nstreams = -1",
            "line 5: `streams` is -1, expected 0 to 4294967295 streams",
        ),
        (
            "role = \"talker\"\nbytes = \"20kb\"",
            "line 5: `bytes` is \"20kb\", expected 0 to 4294967295 bytes of a link's period",
        ),
        (
            "role = \"talker\"\nlease = \"0s\"",
            "line 5: `lease` is \"0s\", expected a time above 0, such as 30s, 10m or 2h",
        ),
        (
            "role = \"talker\"\nhost = [\"a\"]",
            "line 5: unknown key `host` in [[access]]; did you mean `hosts`?",
        ),
    ] {
        let said = access::read(&entry(more)).unwrap_err().to_string();
        assert!(said.contains(words), "{more}: {said}");
    }
}

/// Each role, and what it may do.
#[test]
fn a_role_may_do_what_it_is_for() {
    let hosts = Some(names(&["camera", "r1"]));
    let camera = Caller {
        hosts: hosts.clone(),
        ..Caller::talker("camera")
    };
    let agent = Caller::agent("agent", names(&["camera", "r1"]));
    let (operator, talker) = (Caller::operator("ops"), Caller::talker("me"));
    // Reserve; send from camera and screen; report for camera and screen.
    for (caller, reserves, sends, reports) in [
        (&operator, true, [true, true], [true, true]),
        (&talker, true, [true, true], [false, false]),
        (&camera, true, [true, false], [false, false]),
        (&agent, false, [false, false], [true, false]),
    ] {
        let name = &caller.name;
        assert_eq!(caller.may_reserve().is_ok(), reserves, "{name}");
        for (n, host) in ["camera", "screen"].into_iter().enumerate() {
            let (send, report) = (caller.may_send_from(host), caller.may_report(host));
            assert_eq!(send.is_ok(), sends[n], "{name} {host}");
            assert_eq!(report.is_ok(), reports[n], "{name} {host}");
        }
    }
    let other = Failure::Host {
        host: "screen".to_owned(),
        expected: "\"camera\" or \"r1\"".to_owned(),
    };
    assert_eq!(camera.may_send_from("screen"), Err(other.clone()));
    assert_eq!(agent.may_report("screen"), Err(other));
    for (failure, words) in [
        (
            agent.may_reserve(),
            "an agent may not do this, expected the role \"talker\" or \"operator\"",
        ),
        (
            agent.may_send_from("camera"),
            "an agent may not do this, expected the role \"talker\" or \"operator\"",
        ),
        (
            talker.may_report("camera"),
            "a talker may not do this, expected the role \"agent\" or \"operator\"",
        ),
        (
            agent.may_report("screen"),
            "this caller has nothing to say of the host \"screen\", expected \"camera\" or \"r1\"",
        ),
    ] {
        let failure = failure.unwrap_err();
        assert_eq!(failure.to_string(), words);
        let (status, json) = render("x", Answer::Failed(failure));
        assert_eq!((status, json["error"].as_str()), (403, Some(words)));
    }
}

fn bytes(all: &[(&str, u64)]) -> Vec<LinkBytes> {
    let of = |(link, bytes): &(&str, u64)| LinkBytes {
        link: (*link).into(),
        bytes: *bytes,
    };
    all.iter().map(of).collect()
}

#[test]
fn a_quota_is_of_streams_bytes_and_leases() {
    let quota = |streams: Option<u64>, bytes, lease_ns| Quota {
        streams,
        bytes,
        lease_ns,
    };
    let held = [
        bytes(&[("s", 400), ("t", 400)]),
        bytes(&[("s", 300), ("u", 900)]),
    ];
    let wanted = bytes(&[("s", 300), ("t", 600)]);
    let all = quota(Some(3), Some(1000), Some(60 * S));
    for (of, lease_ns, failed) in [
        (quota(None, None, None), u64::MAX, None),
        (all, 60 * S, None),
        (quota(Some(2), None, None), 1, Some(("`streams`", 3, 2))),
        (quota(Some(0), None, None), 1, Some(("`streams`", 3, 0))),
        (
            quota(None, Some(999), None),
            1,
            Some(("`bytes` of link s", 1000, 999)),
        ),
        (all, 60 * S + 1, Some(("`lease_ns`", 60 * S + 1, 60 * S))),
        // The first that is too much is named.
        (
            quota(Some(2), Some(1), Some(1)),
            2,
            Some(("`lease_ns`", 2, 1)),
        ),
    ] {
        let expected = failed.map_or(Ok(()), |(what, wanted, most): (&str, _, _)| {
            Err(Failure::Quota {
                what: what.to_owned(),
                wanted,
                most,
            })
        });
        let got = of.check(lease_ns, &wanted, held.iter().map(Vec::as_slice));
        assert_eq!(got, expected, "{of:?}");
    }
    // Links that are not wanted do not count, and sums do not overflow.
    let of = quota(None, Some(1000), None);
    let small = bytes(&[("s", 300)]);
    assert_eq!(of.check(1, &small, held.iter().map(Vec::as_slice)), Ok(()));
    let most = bytes(&[("s", u64::MAX)]);
    let both = [most.as_slice(), &small];
    let failure = of.check(1, &most, both.into_iter()).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "`bytes` of link s would be 18446744073709551615, expected at most 1000 of this caller"
    );
    let (status, _) = render("x", Answer::Failed(failure));
    assert_eq!(status, 403);
    // What does not fit a link is no matter of a quota.
    let refusal = Refusal::NoRoute {
        talker: "a".to_owned(),
        listener: "b".to_owned(),
    };
    assert_eq!(render("x", Answer::Refused(refusal)).0, 409);
    // A lease that is begun anew is checked alone.
    assert_eq!(all.check_lease(60 * S), Ok(()));
    assert!(all.check_lease(61 * S).is_err());
}
