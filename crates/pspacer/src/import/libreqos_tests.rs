// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of LibreQoS as files of a host.

use host_config::Rule;
use proptest::prelude::*;
use tcpsp::TypeOptions;

use super::*;

/// What LibreQoS writes and people do: comments, quoted cells, rates with a point, several
/// addresses in a cell, rows of one circuit, a column more, and a comment with a comma.
const DEVICES: &str = "\u{feff}# Subscribers
Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm
1,\"Gasse 1, Wien\",1,CPE 1,AP_A,,\"100.64.0.1, 100.64.0.14\",fdd7:b724:0:100::/56,1,0.5,155,20,,
süd 2,Straße,2,CPE 2,AP_A,,100.64.0.2,,2.5,1,10.5,2.5,Down=cake, Up=fq_codel,cake/fq_codel
2794,Ringgold,5,CPE 5,Site_1,,100.64.0.5,,1,1,105,18,,
# They moved.

2794,Ringgold,6,CPE 6,Site_1,,100.64.0.6,,1,1,105,18,,
3,Flat,7,CPE 7,,,,2001:db8::1,50,20,50,20,,
4,Nothing,8,CPE 8,,,,,50,20,50,20,,
";

const NETWORK: &str = r#"{
 "Site_1": {
  "downloadBandwidthMbps": 400, "uploadBandwidthMbps": 100, "type": "Site",
  "children": {
   "Ring": { "virtual": true, "children": {
    "AP_A": { "downloadBandwidthMbps": 100, "uploadBandwidthMbps": 50, "type": "AP" }
   } }
  }
 }
}"#;

fn import(devices: &[u8], network: Option<&[u8]>, direction: Direction) -> Result<Imported> {
    let devices = Input {
        name: "ShapedDevices.csv".to_owned(),
        bytes: devices.to_vec(),
    };
    let network = network.map(|bytes| Input {
        name: "network.json".to_owned(),
        bytes: bytes.to_vec(),
    });
    let choice = Choice {
        device: "eth0".to_owned(),
        direction,
        line_bps: Some(1_000_000_000),
    };
    libreqos(&devices, network.as_ref(), &choice)
}

/// Imports other devices of the same network.
fn downloads(devices: &str) -> Result<Imported> {
    let network = Some(NETWORK.as_bytes());
    import(devices.as_bytes(), network, Direction::Download)
}

fn good(direction: Direction) -> Imported {
    import(DEVICES.as_bytes(), Some(NETWORK.as_bytes()), direction).unwrap()
}

#[test]
fn circuits_are_classes_and_their_nodes_groups() {
    let imported = good(Direction::Download);
    let device = &Host::read("f", &imported.text).unwrap().devices[0];
    let names: Vec<&str> = device.classes.iter().map(|c| c.name.as_str()).collect();
    let [site, ap, one, south, two, flat] = names[..] else {
        panic!("{names:?}");
    };
    assert_eq!(
        (site, ap, one, two, flat),
        ("Site_1", "AP_A", "1", "2794", "3")
    );
    assert!(south.starts_with("s_d_2-"), "{south}");
    let of = |name: &str| device.classes.iter().find(|c| c.name == name).unwrap();
    assert_eq!(of("1").options.group, Some(of("AP_A").minor));
    assert_eq!(of("3").options.group, None);
    // Faster than its node: that bounds it.
    let TypeOptions::Paced {
        rate_bps, ceil_bps, ..
    } = of("1").options.by_type
    else {
        panic!();
    };
    assert_eq!((rate_bps, ceil_bps), (1_000_000, Some(100_000_000)));
    let of_class = |minor| {
        let rules = device
            .rules
            .iter()
            .filter(move |rule: &&Rule| rule.class == minor);
        rules.count()
    };
    assert_eq!(of_class(of("1").minor), 3);
    assert_eq!(of_class(of("2794").minor), 2);
    assert!(
        imported.text.contains("# Gasse 1, Wien\n"),
        "{}",
        imported.text
    );
    assert!(imported.text.contains("match = [{ to = \"100.64.0.2\" }]"));
    assert_eq!(
        imported.notes,
        [
            "circuits without an address, which are left out: 1, such as 4",
            "node Site_1 of 400 Mbit/s is not kept above the groups below it: together they may \
             take 500 Mbit/s, which is 100 Mbit/s more",
            "circuits that may be faster than the node above them, which bounds them: 1, such as \
             1 with 155 Mbit/s",
        ]
    );
    assert_eq!((imported.classes, imported.groups), (6, 2));
}

#[test]
fn uploads_are_of_the_same_circuits() {
    let imported = good(Direction::Upload);
    assert!(
        imported
            .text
            .contains("match = [{ from = \"100.64.0.2\" }]")
    );
    assert!(
        imported
            .text
            .contains("rate = \"500kbit\"\nceil = \"20mbit\""),
        "{}",
        imported.text
    );
}

#[test]
fn without_a_network_all_are_below_the_device() {
    let flat = DEVICES.replace("AP_A", "").replace("Site_1", "none");
    let imported = import(flat.as_bytes(), None, Direction::Download).unwrap();
    assert_eq!(imported.groups, 0);
    assert!(!imported.text.contains("group"), "{}", imported.text);
}

#[test]
fn what_is_promised_beyond_a_node_is_noted() {
    let much = DEVICES.replace("fdd7:b724:0:100::/56,1,", "fdd7:b724:0:100::/56,99,");
    let imported = downloads(&much).unwrap();
    let said = imported.notes.last().unwrap();
    assert!(
        said.starts_with(
            "group AP_A: its circuits are promised 101.5 Mbit/s, and it has 100 Mbit/s"
        ),
        "{said}"
    );
}

#[test]
fn a_network_comes_behind_what_is_within_it() {
    let wide = DEVICES.replace("\"100.64.0.1, 100.64.0.14\"", "100.64.0.0/24");
    let imported = downloads(&wide).unwrap();
    let at = |what: &str| imported.text.find(what).unwrap();
    assert!(at("\"100.64.0.0/24\"") > at("\"100.64.0.2\""));
    let both = wide.replace("100.64.0.2,,", "\"100.64.0.2,100.65.0.0/16\",,");
    let both = both.replace("100.64.0.0/24", "\"100.64.0.0/24,100.65.0.1\"");
    let said = downloads(&both);
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains("each circuit has an address within a network of the other"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, said) in [
        (
            "1,0.5,155,20",
            "x,0.5,155,20",
            "ShapedDevices.csv:3: column 9, `Download Min Mbps`, is \"x\", expected a rate from \
             0.0025 to 1000000 in Mbit/s such as 25 or 2.5",
        ),
        (
            "1,0.5,155,20",
            "200,0.5,155,20",
            "ShapedDevices.csv:3: column 9, `Download Min Mbps`, is \"200\", expected at most \
             `Download Max Mbps`, 155",
        ),
        (
            "100.64.0.2,",
            "100.64.0.299,",
            "ShapedDevices.csv:4: column 7, `IPv4`, is \"100.64.0.299\", expected addresses or \
             networks, such as 100.64.0.1 or 100.64.1.0/24",
        ),
        (
            "100.64.0.2,",
            "100.64.00.02,",
            "ShapedDevices.csv:4: column 7, `IPv4`, is \"100.64.00.02\", expected octets without \
             leading zeros, which some read as octal, such as 100.64.0.2",
        ),
        (
            "100.64.0.6",
            "100.64.0.2",
            "ShapedDevices.csv:8: column 7, `IPv4`, is \"100.64.0.2\", expected an address of this \
             circuit alone: circuit süd 2 has it in line 4",
        ),
        (
            "Straße,2,CPE 2,AP_A",
            "Straße,2,CPE 2,AP_B",
            "ShapedDevices.csv:4: column 5, `Parent Node`, is \"AP_B\", expected the name of a node \
             of the network, or nothing; did you mean `AP_A`?",
        ),
        (
            "CPE 6,Site_1",
            "CPE 6,AP_A",
            "ShapedDevices.csv:8: column 5, `Parent Node`, is \"AP_A\", expected \"Site_1\", as \
             line 5 has it of the same circuit",
        ),
        (
            "\n3,Flat",
            "\n,Flat",
            "ShapedDevices.csv:9: column 1, `Circuit ID`, is \"\", expected what tells",
        ),
        (
            "Parent Node,",
            "Parent,",
            "ShapedDevices.csv:2: there is no column `Parent Node`",
        ),
        (
            "3,Flat,7,CPE 7,,,,2001:db8::1,50,20,50,20,,",
            "3,Flat",
            "ShapedDevices.csv:9: the row has 2 cells, expected at least 11, up to `Download Max \
             Mbps`",
        ),
    ] {
        let devices = DEVICES.replace(from, to);
        assert_ne!(devices, DEVICES, "{from}");
        let found = downloads(&devices);
        let found = found.unwrap_err().to_string();
        assert!(found.starts_with(said), "{found}\n{said}");
    }
}

#[test]
fn what_is_wrong_of_nodes_is_named() {
    for (from, to, said) in [
        ("\"AP_A\": {", "\"AP_A\": [", "network.json:6: column "),
        (
            "\"downloadBandwidthMbps\": 100",
            "\"downloadBandwidthMbps\": \"fast\"",
            "network.json:6: column 45: \"fast\" is there, expected a rate from 0.0025 to 1000000 in Mbit/s",
        ),
        (
            "\"downloadBandwidthMbps\": 100",
            "\"downloadBandwidthMbps\": 0",
            "network.json:6: column 40: 0 is there, expected a rate from 0.0025 to 1000000 in Mbit/s",
        ),
        (
            "\"downloadBandwidthMbps\": 100, ",
            "",
            "network.json: node AP_A: it lacks `downloadBandwidthMbps`, expected a rate in Mbit/s",
        ),
        (
            "\"virtual\": true,",
            "\"virtual\": true, \"id\": \"x\",",
            "network.json: node AP_A: its id \"x\" is node Ring's, too, expected one node",
        ),
        (
            "\"Ring\"",
            "\"Site_1\"",
            "network.json: node Site_1: it is there twice, expected once",
        ),
    ] {
        let network = NETWORK.replace(from, to);
        let network = if said.contains("its id") {
            network.replace("\"type\": \"AP\"", "\"id\": \"x\"")
        } else {
            network
        };
        assert_ne!(network, NETWORK, "{from}");
        let found = import(
            DEVICES.as_bytes(),
            Some(network.as_bytes()),
            Direction::Download,
        );
        let found = found.unwrap_err().to_string();
        assert!(found.starts_with(said), "{found}\n{said}");
    }
    let latin = DEVICES.replace("Flat", "G\u{0}").into_bytes();
    let latin: Vec<u8> = latin
        .into_iter()
        .map(|b| if b == 0 { 0xe4 } else { b })
        .collect();
    let found = import(&latin, None, Direction::Download)
        .unwrap_err()
        .to_string();
    assert_eq!(
        found,
        "ShapedDevices.csv:9: column 2: expected text in UTF-8"
    );
}

/// Heads of LibreQoS 2: nodes have ids.
const ANCHORED: &str = "\
Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,Parent Node ID,Anchor Node ID,MAC,IPv4,IPv6,Download Min,Upload Min,download_max (Mbps),Upload Max Mbps,Comment
c1,One,d1,cpe1,,,s:a,,198.51.100.1,,1,1,50,10,
c2,Two,d2,cpe2,,s:a,,,198.51.100.2,,1,1,50,10,
c3,Three,d3,cpe3,an old name,s:a,,,198.51.100.3/29,,1,1,50,10,
c4,Four,d4,cpe4,Site,s:b,s:a,,198.51.100.8,2001:db8:5::1/56,1,1,50,10,
";

const IDS: &str = r#"{ "Site": { "id": "s", "downloadBandwidthMbps": "500", "type": "Site",
  "children": { "AP": { "id": "s:a", "downloadBandwidthMbps": 80 },
    "Region": { "id": "s:b", "downloadBandwidthMbps": 10, "type": "Virtual" } } } }"#;

#[test]
fn ids_of_nodes_win_over_their_names() {
    let anchored = |devices: &str| {
        import(
            devices.as_bytes(),
            Some(IDS.as_bytes()),
            Direction::Download,
        )
    };
    let imported = anchored(ANCHORED).unwrap();
    let text = &imported.text;
    assert_eq!(text.matches("group = \"AP\"").count(), 4, "{text}");
    assert_eq!(imported.groups, 1);
    // The subnet, as LibreQoS does.
    assert!(text.contains("{ to = \"198.51.100.0/29\" }"), "{text}");
    assert!(text.contains("{ to = \"2001:db8:5::/56\" }"), "{text}");
    assert_eq!(
        imported.notes,
        [
            "addresses with bits of a host, whose networks count: 2, such as 198.51.100.3/29 in \
             line 4, which is 198.51.100.0/29"
        ]
    );
    let unknown = anchored(&ANCHORED.replace(",s:b,s:a,", ",s:b,s:c,"));
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "ShapedDevices.csv:5: column 7, `Anchor Node ID`, is \"s:c\", expected the id of a node of \
         the network, or nothing; did you mean `s:a`?"
    );
}

#[test]
fn a_node_whose_type_is_virtual_does_not_shape() {
    let below = ANCHORED.replace(",s:b,s:a,", ",s:b,,");
    let imported = import(below.as_bytes(), Some(IDS.as_bytes()), Direction::Download);
    let text = imported.unwrap().text;
    // The node above it does, whose rate is a string.
    assert!(
        text.contains("name = \"Site\"\nrate = \"500mbit\""),
        "{text}"
    );
    assert!(text.contains("# Four\n[[device.class]]\nname = \"c4\"\ngroup = \"Site\""));
}

#[test]
fn a_table_with_semicolons_is_named() {
    let excel = ANCHORED.replace(',', ";").replace("One", "O, ne");
    let said = import(excel.as_bytes(), None, Direction::Download);
    assert_eq!(
        said.unwrap_err().to_string(),
        "ShapedDevices.csv:1: expected commas between cells, the first row has 14 semicolons"
    );
}

proptest! {
    #![proptest_config(testkit::cases(1000))]

    #[test]
    fn any_bytes_are_read_or_refused(devices in any::<Vec<u8>>(), network in any::<Vec<u8>>()) {
        let _ = import(&devices, Some(&network), Direction::Download);
    }

    /// What begins well is read further.
    #[test]
    fn any_change_is_read_or_refused(
        at in any::<prop::sample::Index>(), bytes in proptest::collection::vec(any::<u8>(), 0..6),
        gone in 0..9usize, is_network in any::<bool>(),
    ) {
        let [mut devices, mut network] = [DEVICES, NETWORK].map(|text| text.as_bytes().to_vec());
        let text = if is_network { &mut network } else { &mut devices };
        let at = at.index(text.len());
        let end = (at + gone).min(text.len());
        text.splice(at..end, bytes);
        if let Ok(imported) = import(&devices, Some(&network), Direction::Upload) {
            prop_assert!(Host::read("f", &imported.text).is_ok());
        }
    }
}
