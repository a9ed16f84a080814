// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations beside the margins of their links and what was measured of them: what `pspacer top`
//! and the exporter show. All of it is pure; `poll` asks the managers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::answer::View;
use crate::api::LinkView;
use crate::record::Measured;

/// What a manager said.
#[derive(Clone, Debug)]
pub struct ManagerAnswer {
    pub manager: String,
    /// Its reservations and links, or why there is no answer.
    pub answer: Result<(Vec<View>, Vec<LinkView>), String>,
}

/// What several managers said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// The reservations that the caller may see.
    pub reservations: Vec<ReservationRow>,
    /// The links of the managers that answered.
    pub links: Vec<OverviewLink>,
    /// The managers that were asked.
    pub managers: Vec<ManagerRow>,
}

/// A manager that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManagerRow {
    pub manager: String,
    /// Why there is no answer; `None`: there is one.
    pub problem: Option<String>,
}

/// A link with its manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OverviewLink {
    /// URL of the manager that decides over it.
    pub manager: String,
    #[serde(flatten)]
    pub link: LinkView,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReservationRow {
    /// URL of the manager that granted it.
    pub manager: String,
    pub id: String,
    /// Name of the stream.
    pub stream_id: String,
    /// Who asked for it.
    pub owner: String,
    /// The host that sends.
    pub talker: String,
    /// Whether all nodes that send the stream have put it into force.
    pub in_force: bool,
    /// Names of the nodes that have not.
    pub not_in_force: Vec<String>,
    /// Time until the lease ends, ns.
    pub expires_in_ns: u64,
    /// The hosts that receive.
    pub listeners: Vec<ListenerRow>,
    pub links: Vec<LinkRow>,
    /// Name of the link with the smallest free share of its budget, among those whose manager
    /// answered.
    pub tightest: Option<String>,
}

/// A listener of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListenerRow {
    pub name: String,
    /// Granted bound of a packet's delay, ns.
    pub bound_ns: u64,
    /// The last measurement; `None`: nobody has reported one.
    pub measured: Option<Measured>,
}

/// A link of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkRow {
    pub link: String,
    /// Wire bytes of the reservation in each period.
    pub bytes: u64,
    /// Length of a period, ns; `None`, like the others below: its manager did not answer.
    pub period_ns: Option<u64>,
    /// Wire bytes that streams may take in a period.
    pub budget_bytes: Option<u64>,
    /// Those that no reservation has.
    pub free_bytes: Option<u64>,
}

impl ListenerRow {
    /// Returns whether a packet came later than was granted; `None` without a measurement.
    pub fn is_above(&self) -> Option<bool> {
        Some(self.measured?.worst_delay_ns > self.bound_ns)
    }
}

impl Overview {
    /// Returns what managers said, reservations in the order of the managers and their ids.
    /// O(n log links).
    pub fn of(said: Vec<ManagerAnswer>) -> Self {
        let mut overview = Self::default();
        let mut views = Vec::new();
        for ManagerAnswer { manager, answer } in said {
            let problem = match answer {
                Ok((found, links)) => {
                    views.extend(found.into_iter().map(|view| (manager.clone(), view)));
                    let links = links.into_iter().map(|link| OverviewLink {
                        manager: manager.clone(),
                        link,
                    });
                    overview.links.extend(links);
                    None
                }
                Err(problem) => Some(problem),
            };
            overview.managers.push(ManagerRow { manager, problem });
        }
        let links = Links::of(&overview.links);
        let rows = views.into_iter();
        overview.reservations = rows
            .map(|(manager, view)| row(manager, view, &links))
            .collect();
        overview
    }
}

/// Links by name.
struct Links<'a> {
    by_manager: BTreeMap<(&'a str, &'a str), &'a LinkView>,
    by_name: BTreeMap<&'a str, &'a LinkView>,
}

impl<'a> Links<'a> {
    fn of(links: &'a [OverviewLink]) -> Self {
        let by_manager = links.iter().map(|of| {
            let names = (of.manager.as_str(), of.link.link.as_str());
            (names, &of.link)
        });
        let by_name = links.iter().map(|of| (of.link.link.as_str(), &of.link));
        Self {
            by_manager: by_manager.collect(),
            by_name: by_name.collect(),
        }
    }

    /// Returns a link of a reservation of this manager. Two networks may have links of one name, so
    /// the manager's own comes first.
    fn find(&self, manager: &str, name: &str) -> Option<&'a LinkView> {
        let own = self.by_manager.get(&(manager, name));
        own.or_else(|| self.by_name.get(name)).copied()
    }
}

fn row(manager: String, mut view: View, links: &Links<'_>) -> ReservationRow {
    let first = view.listeners.first();
    let talker = first.and_then(|of| of.route.first());
    let talker = talker.map(ToString::to_string);
    let listeners = view.listeners.into_iter().map(|of| ListenerRow {
        measured: view.measured.remove(of.name.as_str()),
        bound_ns: of.bound_ns,
        name: of.name.to_string(),
    });
    let listeners = listeners.collect();
    let own = view.links.iter().map(|of| {
        let known = links.find(&manager, &of.link);
        LinkRow {
            link: of.link.to_string(),
            bytes: of.bytes,
            period_ns: known.map(|link| link.period_ns),
            budget_bytes: known.map(|link| link.budget_bytes),
            free_bytes: known.map(|link| link.free_bytes),
        }
    });
    let own: Vec<_> = own.collect();
    ReservationRow {
        manager,
        id: view.id,
        stream_id: view.stream_id,
        owner: view.owner,
        talker: talker.unwrap_or_default(),
        in_force: view.in_force,
        not_in_force: view.not_in_force,
        expires_in_ns: view.expires_in_ns,
        listeners,
        tightest: tightest(&own),
        links: own,
    }
}

/// Returns the name of the link with the smallest free share; of equal ones the first.
fn tightest(links: &[LinkRow]) -> Option<String> {
    let mut found: Option<(&LinkRow, u64, u64)> = None;
    for link in links {
        let Some((free, budget)) = link.free_bytes.zip(link.budget_bytes) else {
            continue;
        };
        // Shares as fractions: free / budget of one below that of the other.
        let is_tighter = found.is_none_or(|(_, least, of)| {
            u128::from(free) * u128::from(of) < u128::from(least) * u128::from(budget)
        });
        if is_tighter {
            found = Some((link, free, budget));
        }
    }
    found.map(|(link, _, _)| link.link.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use admission::{LinkBytes, ListenerGrant};

    fn link(name: &str, budget_bytes: u64, free_bytes: u64) -> LinkView {
        LinkView {
            link: name.to_owned(),
            period_ns: 10_000_000,
            budget_bytes,
            reserved_bytes: budget_bytes - free_bytes,
            free_bytes,
        }
    }

    fn view() -> View {
        let listener = |name: &str, bound_ns| ListenerGrant {
            name: name.into(),
            bound_ns,
            route: ["camera", "studio", name]
                .map(admission::Name::from)
                .to_vec(),
        };
        let bytes = |link: &str| LinkBytes {
            link: link.into(),
            bytes: 1000,
        };
        let measured = Measured {
            worst_delay_ns: 23,
            packets: 9,
            lost_packets: 1,
        };
        View {
            id: "x".to_owned(),
            granted: true,
            stream_id: "x".to_owned(),
            owner: "me".to_owned(),
            bound_ns: 30,
            lease_ns: 1,
            expires_in_ns: 1,
            in_force: true,
            not_in_force: vec![],
            spread_periods: 1,
            listeners: vec![listener("screen", 22), listener("wall", 30)],
            links: ["a", "b", "c"].map(bytes).to_vec(),
            measured: [("screen".to_owned(), measured)].into(),
        }
    }

    #[test]
    fn measurements_and_margins_are_those_of_their_listeners_and_links() {
        let links = vec![link("b", 100, 10), link("a", 1000, 90), link("z", 10, 0)];
        let said = vec![
            ManagerAnswer {
                manager: "m".to_owned(),
                answer: Ok((vec![view()], links)),
            },
            ManagerAnswer {
                manager: "n".to_owned(),
                answer: Err("no route".to_owned()),
            },
        ];
        let overview = Overview::of(said);
        let row = &overview.reservations[0];
        assert_eq!((row.manager.as_str(), row.talker.as_str()), ("m", "camera"));
        // A share of 9 % is less than one of 10 %, and z is none of its links.
        assert_eq!(row.tightest.as_deref(), Some("a"));
        // Nobody said anything of c, and nobody measured at the wall.
        assert_eq!((row.links[2].bytes, row.links[2].free_bytes), (1000, None));
        assert_eq!(row.links[0].free_bytes, Some(90));
        let above: Vec<_> = row.listeners.iter().map(ListenerRow::is_above).collect();
        assert_eq!(above, [Some(true), None]);
        assert_eq!(overview.managers[0].problem, None);
        assert_eq!(overview.managers[1].problem.as_deref(), Some("no route"));
    }

    #[test]
    fn a_delay_equal_to_the_bound_keeps_it() {
        let mut row = ListenerRow {
            name: "screen".to_owned(),
            bound_ns: 23,
            measured: view().measured.remove("screen"),
        };
        assert_eq!(row.is_above(), Some(false));
        row.bound_ns = 22;
        assert_eq!(row.is_above(), Some(true));
    }
}
