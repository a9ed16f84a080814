// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is promised of changes while classes send: whatever changes and however often, a class
//! has sent what its rates of each moment come to, but for one frame, at any instant. So it is
//! neither silent for longer than a frame takes at the new rate nor ahead for good.

use std::collections::VecDeque;

use pace::{ClassConfig, ClassId, Config, Decision, GroupId, Mode, Scheduler};

use crate::wire::Random;

const LINE: u64 = 100_000_000;
const MTU: u32 = 1514;
const MS: u64 = 1_000_000;
/// What a timer's virtual line makes up for.
const SLACK_NS: u64 = 100_000;
/// Bytes at 1 bit/s for a nanosecond.
const UNIT: u128 = 8_000_000_000;

/// Counts what a class may have sent: the sum of rate x time since the beginning.
struct Account {
    class: ClassId,
    rate_bps: u64,
    since_ns: u64,
    /// Rates to come, and from when on they count.
    coming: VecDeque<(u64, u64)>,
    /// In units of a byte / 8e9.
    due: u128,
    sent: u128,
    /// The largest distances seen, bytes.
    ahead: i128,
    behind: i128,
    len: u32,
}

impl Account {
    fn new(class: ClassId, rate_bps: u64, len: u32) -> Self {
        Account {
            class,
            rate_bps,
            since_ns: 0,
            coming: VecDeque::new(),
            due: 0,
            sent: 0,
            ahead: 0,
            behind: 0,
            len,
        }
    }

    fn pass(&mut self, now_ns: u64) {
        while let Some(&(from_ns, rate_bps)) = self.coming.front() {
            if from_ns > now_ns {
                break;
            }
            self.coming.pop_front();
            self.pass_at_rate(from_ns.max(self.since_ns));
            self.rate_bps = rate_bps;
        }
        self.pass_at_rate(now_ns);
    }

    fn pass_at_rate(&mut self, now_ns: u64) {
        self.due += u128::from(self.rate_bps) * u128::from(now_ns - self.since_ns);
        self.since_ns = now_ns;
    }

    /// Sent less due, bytes, rounded away from zero.
    fn distance(&mut self, now_ns: u64) -> i128 {
        self.pass(now_ns);
        let units = self.sent as i128 * UNIT as i128 - self.due as i128;
        units.signum() * units.unsigned_abs().div_ceil(UNIT) as i128
    }

    fn note(&mut self, now_ns: u64) {
        let distance = self.distance(now_ns);
        self.ahead = self.ahead.max(distance);
        self.behind = self.behind.max(-distance);
    }
}

/// A port whose classes always have another frame, and a driver that holds what was handed
/// out until the wire has carried it.
struct Host {
    port: Scheduler,
    cfg: Config,
    accounts: Vec<Account>,
    now_ns: u64,
    /// The wire is busy until then, in units of ns x LINE / 8e9 bytes: the bytes it carries.
    busy_ps: u64,
    /// What it was at the last change of the mode.
    handed_ps: u64,
    /// What the driver takes, as time on the wire.
    holds_ps: u64,
    /// Frames in the driver, and when each has left.
    held: Vec<(usize, u64)>,
}

impl Host {
    fn new(mode: Mode, holds_bytes: u64) -> Self {
        let cfg = Config {
            mode,
            ..Config::ethernet(LINE, MTU)
        };
        Host {
            port: Scheduler::new(&cfg, 0).unwrap(),
            cfg,
            accounts: Vec::new(),
            now_ns: 0,
            busy_ps: 0,
            handed_ps: 0,
            holds_ps: holds_bytes * 8_000_000_000_000 / LINE,
            held: Vec::new(),
        }
    }

    fn add(&mut self, config: &ClassConfig, rate_bps: u64, len: u32) -> usize {
        let class = self.port.add_class(config).unwrap();
        self.join(class, rate_bps, len)
    }

    fn join(&mut self, class: ClassId, rate_bps: u64, len: u32) -> usize {
        self.port.activate(class, self.now_ns).unwrap();
        self.accounts.push(Account::new(class, rate_bps, len));
        self.accounts.len() - 1
    }

    fn hand_out(&mut self, wire_bytes: u32) -> u64 {
        let takes_ps = u64::from(wire_bytes) * 8_000_000_000_000 / LINE;
        self.busy_ps = self.busy_ps.max(self.now_ns * 1000) + takes_ps;
        self.busy_ps.div_ceil(1000)
    }

    /// What has left by now counts as sent.
    fn leave(&mut self) {
        let now_ns = self.now_ns;
        let gone = self.held.iter().take_while(|held| held.1 <= now_ns).count();
        for (at, left_ns) in self.held.drain(..gone) {
            let account = &mut self.accounts[at];
            account.note(left_ns);
            account.sent += u128::from(account.len);
            account.note(left_ns);
        }
    }

    fn run_until(&mut self, end_ns: u64) {
        while self.now_ns < end_ns {
            self.leave();
            let room_ns = (self.busy_ps.saturating_sub(self.holds_ps)).div_ceil(1000);
            if room_ns > self.now_ns {
                self.now_ns = room_ns.min(end_ns);
                continue;
            }
            match self.port.next(self.now_ns) {
                Decision::Send(class) => {
                    let at = self.accounts.iter().position(|one| one.class == class);
                    let at = at.unwrap();
                    let len = self.accounts[at].len;
                    self.port.sent(class, len, true, self.now_ns).unwrap();
                    let left_ns = self.hand_out(len.max(60) + 24);
                    self.held.push((at, left_ns));
                }
                Decision::Gap { wire_bytes } => {
                    self.port.gap_sent(wire_bytes);
                    self.hand_out(wire_bytes);
                }
                Decision::Wait { until_ns } => self.now_ns = until_ns.min(end_ns),
                Decision::Idle => unreachable!("all classes have frames"),
            }
        }
        self.now_ns = end_ns;
        self.leave();
        for account in &mut self.accounts {
            account.note(end_ns);
        }
    }

    fn set_rate(&mut self, at: usize, config: &ClassConfig, rate_bps: u64) {
        let account = &mut self.accounts[at];
        // Where sent bytes are the clock, what the driver holds is of the rate of before.
        let handed_ps = match self.cfg.mode {
            Mode::Timer => self.handed_ps,
            Mode::Gap | Mode::Hybrid => self.busy_ps,
        };
        let from_ns = self.now_ns.max(handed_ps.div_ceil(1000));
        account.coming.push_back((from_ns, rate_bps));
        self.port
            .change_class(account.class, config, self.now_ns)
            .unwrap();
    }

    fn set_mode(&mut self, mode: Mode) {
        self.handed_ps = self.busy_ps;
        let cfg = Config { mode, ..self.cfg };
        self.port.reconfigure(&cfg, self.now_ns).unwrap();
        self.cfg = cfg;
    }

    /// What each class may be behind: others' frames on the wire, and what the driver holds.
    fn late_bytes(&self, rate_bps: u64) -> i128 {
        let frames = self.accounts.len() as u64 + 3;
        let ps = self.holds_ps + frames * u64::from(MTU + 24) * 8_000_000_000_000 / LINE;
        (u128::from(ps) * u128::from(rate_bps)).div_ceil(UNIT * 1000) as i128
    }

    fn check(&self, most_bps: u64, what: &str) {
        self.check_beside(0, most_bps, what);
    }

    /// The wire may be so much busier than a timer's virtual line says: what is handed out
    /// then counts that much longer at the rate of before.
    fn check_beside(&self, slack_ns: u64, most_bps: u64, what: &str) {
        let slack = (u128::from(slack_ns) * u128::from(most_bps)).div_ceil(UNIT) as i128;
        for account in &self.accounts {
            let len = i128::from(account.len);
            let (ahead, behind) = (account.ahead, account.behind);
            // Gap frames round to half of a smallest frame, instants to a nanosecond.
            let room = self.late_bytes(most_bps) + 45;
            assert!(
                ahead <= len + 45 + slack,
                "{what}: {} of {len} bytes ahead",
                ahead
            );
            assert!(
                behind <= len + room,
                "{what}: {behind} of {len} bytes behind"
            );
        }
    }
}

fn paced(rate_bps: u64) -> ClassConfig {
    ClassConfig::Paced { rate_bps }
}

/// Rates from 8 kbit/s on, as many of each magnitude.
fn any_rate(random: &mut Random, most_bps: u64) -> u64 {
    let span = (most_bps / 8000).ilog2();
    (8000 << random.below(u64::from(span) + 1)).min(most_bps)
}

#[test]
fn a_class_that_was_slow_is_fast_at_once() {
    for mode in [Mode::Timer, Mode::Gap, Mode::Hybrid] {
        for slow in [8000, 64_000] {
            let mut host = Host::new(mode, 3000);
            host.add(&paced(slow), slow, MTU);
            host.add(&paced(5_000_000), 5_000_000, 800);
            host.run_until(3 * MS);
            let before = host.accounts[0].sent;
            host.set_rate(0, &paced(30_000_000), 30_000_000);
            host.run_until(5 * MS);
            assert!(host.accounts[0].sent > before, "{mode:?} from {slow}");
            host.run_until(1000 * MS);
            host.check(30_000_000, &format!("{mode:?} from {slow}"));
        }
    }
}

/// The rate of a class that borrows becomes what it borrowed up to.
#[test]
fn a_class_that_borrowed_has_that_rate_at_once() {
    for (slow, mode) in [
        (8000, Mode::Timer),
        (64_000, Mode::Timer),
        (8000, Mode::Gap),
    ] {
        let mut host = Host::new(mode, 3000);
        let borrowing = |rate_bps| ClassConfig::Borrowing {
            rate_bps,
            ceil_bps: 30_000_000,
        };
        host.add(&borrowing(slow), 30_000_000, MTU);
        host.run_until(50 * MS);
        host.set_rate(0, &borrowing(30_000_000), 30_000_000);
        host.run_until(52 * MS);
        let account = &mut host.accounts[0];
        let distance = account.distance(52 * MS);
        assert!(
            distance.abs() <= 3 * i128::from(MTU),
            "{mode:?}: {distance}"
        );
    }
}

#[test]
fn rates_count_from_their_change_on_however_many_there_are() {
    for seed in 1..=60 {
        let mut random = Random(seed * 7919);
        let mode = [Mode::Timer, Mode::Gap, Mode::Hybrid][(seed % 3) as usize];
        let mut host = Host::new(mode, 3000);
        let most = 16_000_000;
        for len in [MTU, 700, 200, 60] {
            let rate = any_rate(&mut random, most);
            host.add(&paced(rate), rate, len);
        }
        for _ in 0..60 {
            let at = random.below(4) as usize;
            let rate = any_rate(&mut random, most);
            host.set_rate(at, &paced(rate), rate);
            let pause = 1 << random.below(25);
            host.run_until(host.now_ns + pause);
        }
        host.run_until(host.now_ns + 100 * MS);
        host.check(most, &format!("seed {seed}, {mode:?}"));
    }
}

/// The driver holds up to 64,000 bytes, 5 ms, whenever the mode changes.
#[test]
fn another_mode_gives_no_class_what_the_driver_holds() {
    let modes = [Mode::Gap, Mode::Timer, Mode::Hybrid];
    for (from, to) in (0..9).map(|n| (modes[n / 3], modes[n % 3])) {
        for holds in [3000, 16_000, 64_000] {
            let mut host = Host::new(from, holds);
            host.add(&paced(30_000_000), 30_000_000, MTU);
            host.add(&paced(5_000_000), 5_000_000, MTU);
            for change in 0..20 {
                host.run_until((change + 1) * 50 * MS);
                host.set_mode(if change % 2 == 0 { to } else { from });
            }
            host.run_until(1100 * MS);
            host.check(30_000_000, &format!("{from:?}, {to:?}, {holds} bytes"));
        }
    }
}

#[test]
fn modes_and_rates_change_in_any_order() {
    for seed in 1..=40 {
        let mut random = Random(seed * 104_729);
        let modes = [Mode::Gap, Mode::Timer, Mode::Hybrid];
        let mut host = Host::new(modes[random.below(3) as usize], 1 << (11 + random.below(6)));
        let most = 22_000_000;
        for len in [MTU, 500, 90] {
            let rate = any_rate(&mut random, most);
            host.add(&paced(rate), rate, len);
        }
        for _ in 0..60 {
            match random.below(3) {
                0 => host.set_mode(modes[random.below(3) as usize]),
                _ => {
                    let at = random.below(3) as usize;
                    let rate = any_rate(&mut random, most);
                    host.set_rate(at, &paced(rate), rate);
                }
            }
            let pause = 1 << random.below(25);
            host.run_until(host.now_ns + pause);
        }
        host.run_until(host.now_ns + 100 * MS);
        host.check_beside(SLACK_NS, most, &format!("seed {seed}"));
    }
}

/// A group, and a class below it: what is sent follows the rates of either.
#[test]
fn a_group_and_its_classes_have_their_rates_at_once() {
    for mode in [Mode::Timer, Mode::Gap, Mode::Hybrid] {
        for slow in [8000, 64_000] {
            let mut host = Host::new(mode, 3000);
            let group: GroupId = host.port.add_group(slow, slow).unwrap();
            let class = host.port.add_class_in(group, &paced(slow)).unwrap();
            host.join(class, slow, MTU);
            host.run_until(3 * MS);
            let fast = 30_000_000;
            let cfg = host.cfg;
            host.port
                .change_group(group, &cfg, fast, fast, host.now_ns)
                .unwrap();
            host.set_rate(0, &paced(fast), fast);
            host.run_until(5 * MS);
            host.accounts[0].note(5 * MS);
            host.run_until(500 * MS);
            let room = host.late_bytes(fast) + 2 * i128::from(MTU);
            let (ahead, behind) = (host.accounts[0].ahead, host.accounts[0].behind);
            assert!(ahead <= i128::from(MTU) + 45, "{mode:?}: {ahead} ahead");
            assert!(behind <= room, "{mode:?} from {slow}: {behind} behind");
        }
    }
}
