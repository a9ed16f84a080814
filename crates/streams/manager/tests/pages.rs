// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists that have no end: a manager that repeats a page, or sends more than was asked for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

use manager_proto::client::{Client, Tls};
use serde_json::{Value, json};

/// Entries of a page that the client asks for.
const PAGE: usize = 250;

/// Answers each request with the same page, for ever.
fn repeats(page: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let page = page.to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new((&stream).take(8192)).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let bytes = page.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n");
            let _ = stream.write_all((head + &page).as_bytes());
        }
    });
    url
}

fn parts(ids: impl Iterator<Item = usize>) -> Value {
    let part = |id: usize| {
        json!({
            "coordinator": "one", "id": format!("r{id:05}"), "committed": true,
            "stream_id": "00-00-00-00-00-01:1", "links": [], "expires_in_ns": 1,
        })
    };
    ids.map(part).collect()
}

#[test]
fn a_list_that_repeats_itself_is_no_list() {
    for (page, is_right) in [
        (parts(0..3), true),
        (parts(0..PAGE), false),
        (parts(0..PAGE + 1), false),
    ] {
        let client = Client::new(&repeats(&page), None, &Tls::default()).unwrap();
        let list = client.parts();
        assert_eq!(list.is_ok(), is_right, "{list:?}");
        if let Err(error) = list {
            let said = error.to_string();
            assert!(
                said.contains("no answer of a manager: a page after"),
                "{said}"
            );
        }
    }
}
