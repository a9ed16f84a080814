// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of filters as changes of a qdisc.

use tcpsp::{Change, FilterId, Handle};

use crate::merge::{Edit, Placed};
use crate::port::FilterState;

/// Returns the change of a step.
pub(crate) fn change_of(edit: &Edit, qdisc: Handle) -> Change {
    let at = |placed: &Placed| FilterId {
        qdisc,
        priority: placed.priority,
        handle: placed.handle,
    };
    let class = |placed: &Placed| Handle::new(qdisc.major(), placed.class);
    match edit {
        Edit::Add(placed) => Change::AddFilter {
            at: at(placed),
            matching: placed.matching.clone(),
            class: class(placed),
        },
        Edit::Redirect(placed) => Change::ReplaceFilter {
            at: at(placed),
            matching: placed.matching.clone(),
            class: class(placed),
        },
        Edit::Delete(placed) => Change::DeleteFilter {
            at: at(placed),
            kind: placed.matching.kind().to_owned(),
            protocol: placed.matching.protocol(),
        },
    }
}

/// Takes a filter of others out.
pub(crate) fn delete(filter: &FilterState, qdisc: Handle) -> Change {
    Change::DeleteFilter {
        at: FilterId {
            qdisc,
            priority: filter.priority,
            handle: filter.handle,
        },
        kind: filter.kind.clone(),
        protocol: filter.protocol,
    }
}
