// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records a sender's variables at each acknowledgement in bounded memory. The name epool is
//! that of paper 001, section 3.5.
//!
//! The paper's epool stops when its memory is full. This one thins its records instead: it
//! drops every second ordinary record, and from then on records half as many. Each record
//! holds the number of readings omitted since the one before. Timeouts, segments that the
//! local queue dropped, and changes of state are kept as long as they fill no more than half
//! of the capacity. To record every acknowledgement of a short time, as the paper's figures 5
//! and 6 show it, pass that time to [`Epool::between`].

use std::io;

use units::clock::Time;

use crate::variables::{Moment, Observer, State, Vars};

/// Least capacity: fewer records would be of no use.
const CAPACITY_MIN: usize = 16;

/// A sender's variables at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Instant of the reading.
    pub time: Time,
    /// Event after which the variables were read.
    pub moment: Moment,
    /// Number of readings omitted since the record before.
    pub omitted: u64,
    /// Whether it is a timeout, a local drop or a change of state, which are kept longest.
    pub notable: bool,
    pub vars: Vars,
}

/// The records of a sender. Attach it to a sender as its [`Observer`].
#[derive(Clone, Debug)]
pub struct Epool {
    records: Vec<Reading>,
    capacity: usize,
    moment: Moment,
    from: Time,
    until: Time,
    /// One in this many ordinary readings is recorded.
    stride: u64,
    /// Ordinary readings since the last one recorded.
    since: u64,
    omitted: u64,
    state: Option<State>,
}

impl Epool {
    /// Creates an epool of at most `capacity` records (at least 16), each of about 150 bytes.
    /// It records readings at `moment` and all notable readings.
    pub fn new(capacity: usize, moment: Moment) -> Epool {
        Epool::between(capacity, moment, Time::START, Time::from_ps(u64::MAX))
    }

    /// Creates an epool that also ignores readings before `from`, and from `until` on.
    pub fn between(capacity: usize, moment: Moment, from: Time, until: Time) -> Epool {
        let capacity = capacity.max(CAPACITY_MIN);
        Epool {
            records: Vec::new(),
            capacity,
            moment,
            from,
            until,
            stride: 1,
            since: 0,
            omitted: 0,
            state: None,
        }
    }

    /// Returns the records, oldest first.
    pub fn records(&self) -> &[Reading] {
        &self.records
    }

    /// Returns how many ordinary readings there are per recorded one now; 1 if all are
    /// recorded.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Returns the number of readings omitted so far.
    pub fn omitted(&self) -> u64 {
        self.omitted
            + self
                .records
                .iter()
                .map(|record| record.omitted)
                .sum::<u64>()
    }

    /// Counts readings that were never passed to this epool: the next record includes them in
    /// its omitted readings.
    pub fn omit(&mut self, readings: u64) {
        self.omitted += readings;
    }

    /// Iterates over one variable as pairs of time, in seconds, and value, for a plot.
    pub fn series<'a, F>(&'a self, value: F) -> impl Iterator<Item = (f64, f64)> + 'a
    where
        F: Fn(&Vars) -> f64 + 'a,
    {
        self.records
            .iter()
            .map(move |record| (record.time.as_s(), value(&record.vars)))
    }

    /// Writes a table with the column names in the first line and one line for each record.
    /// Times are in nanoseconds, sequence numbers and the peer's window in bytes, the other
    /// columns in segments.
    pub fn write_csv<W: io::Write>(&self, to: W) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(to);
        table.write_record(COLUMNS)?;
        for record in &self.records {
            table.write_record(row(record))?;
        }
        table.flush()
    }

    fn take(&mut self, record: Reading) {
        if self.records.len() >= self.capacity {
            self.thin();
        }
        self.records.push(record);
    }

    /// Makes room. Drops every second ordinary record; if the notable ones fill more than half
    /// of the capacity, drops every second record of all.
    fn thin(&mut self) {
        self.stride = self.stride.saturating_mul(2);
        self.drop_every_second(|record| !record.notable);
        if self.records.len() > self.capacity / 2 {
            let notable = self.records.iter().filter(|record| record.notable).count();
            if notable > self.capacity / 2 {
                self.drop_every_second(|_| true);
            }
        }
        if self.records.len() >= self.capacity {
            self.drop_every_second(|_| true);
        }
    }

    fn drop_every_second(&mut self, may_drop: impl Fn(&Reading) -> bool) {
        let mut met = 0u64;
        let mut carried = 0;
        self.records.retain_mut(|record| {
            if may_drop(record) {
                met += 1;
                if met % 2 == 0 {
                    carried += record.omitted + 1;
                    return false;
                }
            }
            record.omitted += std::mem::take(&mut carried);
            true
        });
        self.omitted += carried;
    }
}

impl Observer for Epool {
    fn observe(&mut self, now: Time, moment: Moment, vars: &Vars) {
        if now < self.from || now >= self.until {
            return;
        }
        let changed = self.state.replace(vars.state) != Some(vars.state);
        let event = matches!(moment, Moment::Timeout | Moment::LocalDrop);
        let notable = event || changed;
        if !notable {
            if moment != self.moment {
                return;
            }
            self.since += 1;
            if self.since < self.stride {
                self.omitted += 1;
                return;
            }
            self.since = 0;
        }
        let record = Reading {
            time: now,
            moment,
            omitted: std::mem::take(&mut self.omitted),
            notable,
            vars: *vars,
        };
        self.take(record);
    }
}

const COLUMNS: [&str; 22] = [
    "time_ns",
    "moment",
    "omitted",
    "state",
    "una",
    "nxt",
    "high_seq",
    "sack_start",
    "sack_end",
    "window_bytes",
    "cwnd",
    "ssthresh",
    "packets_out",
    "sacked_out",
    "lost_out",
    "retrans_out",
    "fackets_out",
    "in_flight",
    "reordering",
    "srtt_ns",
    "rto_ns",
    "notable",
];

fn row(record: &Reading) -> [String; COLUMNS.len()] {
    let vars = &record.vars;
    [
        record.time.as_ns().to_string(),
        record.moment.name().to_owned(),
        record.omitted.to_string(),
        vars.state.name().to_owned(),
        vars.una.to_string(),
        vars.nxt.to_string(),
        vars.high_seq.to_string(),
        vars.sack.0.to_string(),
        vars.sack.1.to_string(),
        vars.window_bytes.to_string(),
        vars.cwnd.to_string(),
        vars.ssthresh.to_string(),
        vars.packets_out.to_string(),
        vars.sacked_out.to_string(),
        vars.lost_out.to_string(),
        vars.retrans_out.to_string(),
        vars.fackets_out.to_string(),
        vars.in_flight.to_string(),
        vars.reordering.to_string(),
        vars.srtt.as_ns().to_string(),
        vars.rto.as_ns().to_string(),
        u8::from(record.notable).to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(us: u64) -> Time {
        Time::from_ps(us * 1_000_000)
    }

    fn vars(una: u64, state: State) -> Vars {
        Vars {
            una,
            state,
            ..Vars::default()
        }
    }

    #[test]
    fn every_reading_is_kept_while_there_is_room() {
        let mut epool = Epool::new(100, Moment::Ack);
        for n in 0..100 {
            epool.observe(at(n), Moment::Ack, &vars(n, State::Open));
            epool.observe(at(n), Moment::Scoreboard, &vars(n, State::Open));
        }
        assert_eq!(epool.records().len(), 100);
        assert_eq!((epool.stride(), epool.omitted()), (1, 0));
        epool.observe(at(100), Moment::Ack, &vars(100, State::Open));
        assert!(epool.records().len() < 60);
        assert_eq!(epool.stride(), 2);
    }

    #[test]
    fn timeouts_are_kept_when_acknowledgements_are_dropped() {
        let mut epool = Epool::new(32, Moment::Ack);
        for n in 0..10_000 {
            let moment = if n == 5000 {
                Moment::Timeout
            } else {
                Moment::Ack
            };
            epool.observe(at(n), moment, &vars(n, State::Open));
        }
        assert!(
            epool
                .records()
                .iter()
                .any(|r| r.moment == Moment::Timeout && r.vars.una == 5000)
        );
    }

    #[test]
    fn readings_that_were_lost_count_as_omitted() {
        let mut epool = Epool::new(16, Moment::Ack);
        epool.observe(at(0), Moment::Ack, &vars(0, State::Open));
        epool.omit(7);
        assert_eq!(epool.omitted(), 7);
        epool.observe(at(1), Moment::Ack, &vars(1, State::Open));
        assert_eq!(epool.records()[1].omitted, 7);
        assert_eq!(epool.omitted(), 7);
    }

    #[test]
    fn a_part_of_the_time_is_recorded_in_full() {
        let mut epool = Epool::between(32, Moment::Ack, at(10), at(20));
        for n in 0..100 {
            epool.observe(at(n), Moment::Ack, &vars(n, State::Open));
        }
        let una: Vec<u64> = epool.records().iter().map(|r| r.vars.una).collect();
        assert_eq!(una, (10..20).collect::<Vec<u64>>());
        assert_eq!(epool.omitted(), 0);
    }

    #[test]
    fn a_table_has_a_line_for_each_record() -> io::Result<()> {
        let mut epool = Epool::new(16, Moment::Ack);
        epool.observe(at(3), Moment::Ack, &vars(7, State::Recovery));
        let mut text = Vec::new();
        epool.write_csv(&mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("time_ns,moment,omitted,state,una,"));
        assert!(lines[1].starts_with("3000,ack,0,recovery,7,"));
        Ok(())
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        /// There are never more records than the capacity, and every reading is kept or counted
        /// as left out.
        #[test]
        fn kept_and_omitted_readings_are_all_readings(
            capacity in 0usize..200,
            readings in prop::collection::vec((0u8..10, 0u8..30), 0..3000),
        ) {
            let mut epool = Epool::new(capacity, Moment::Ack);
            for (n, (event, state)) in readings.iter().enumerate() {
                let moment = if *event == 0 { Moment::Timeout } else { Moment::Ack };
                let state = if *state == 0 { State::Loss } else { State::Open };
                epool.observe(at(n as u64), moment, &vars(n as u64, state));
                prop_assert!(epool.records().len() <= capacity.max(CAPACITY_MIN));
            }
            let kept = epool.records().len() as u64;
            prop_assert_eq!(kept + epool.omitted(), readings.len() as u64);
            let times: Vec<Time> = epool.records().iter().map(|r| r.time).collect();
            prop_assert!(times.is_sorted());
        }
    }
}
