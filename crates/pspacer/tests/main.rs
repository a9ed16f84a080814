// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod agent_lab;
mod any_capture;
mod back_lab;
mod circles;
mod command;
mod common;
mod confined_lab;
mod documents;
mod experiments;
mod grant_bounds;
mod host;
mod hosts;
mod house;
mod house_circles;
mod installed;
mod map;
mod measure;
mod media;
mod media_audio_lab;
mod media_lab;
mod monitoring_lab;
mod outputs;
mod periods_lab;
mod ping;
mod predict;
mod release;
mod reservation_changes;
mod reservations;
mod reservations_lab;
mod results_dir;
mod router;
mod router_limits;
mod signing_lab;
mod sim;
mod stalls;
mod stalls_annotate;
mod stalls_choice;
mod stalls_follow;
mod stalls_for_applications;
mod stop_explained;
mod streams;
mod systemd_lab;
mod transfers;
mod upstream;
mod verify_lab;
mod watch;
mod watch_lab;
