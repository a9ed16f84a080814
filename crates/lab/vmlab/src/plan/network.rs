// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that make hosts and cables.

use scenario::topology::{address, far_host, hardware_address, leaving, routes};
use scenario::{BottleneckKind, Direction, End};

use super::{WIRE, Writer, quote};

impl Writer<'_> {
    /// Makes namespaces and cables with their bottlenecks, and sets each host up.
    pub(super) fn network(&mut self) {
        let cell = self.cell;
        for host in &cell.hosts {
            self.run(format_args!("ip netns add {}", host.name));
        }
        for (index, cable) in cell.cables.iter().enumerate() {
            let k = index + 1;
            let mut line = format!(
                "name={} a=c{k}a b=c{k}b rate_bps={} delay_ns={} mtu={} queues={} ring={} \
                 coalesce_frames={} coalesce_ns={} sink={} snap={}",
                cable.name,
                cable.rate_bps,
                cable.delay_ns,
                cable.mtu,
                cable.queues,
                cable.ring,
                cable.coalesce_frames,
                cable.coalesce_ns,
                u8::from(cable.sink),
                cable.snap_bytes,
            );
            if let Some(bytes) = cable.bql_min_bytes {
                line += &format!(" bql_min={bytes}");
            }
            self.run(format_args!("echo {line} > {WIRE}/create"));
            for end in End::BOTH {
                let device = &cable.ends[end.index()];
                let host = self.host(device.host).to_owned();
                let name = &device.name;
                self.run(format_args!(
                    "ip link set c{k}{end} netns {host} name {name}"
                ));
            }
            for (end, bottleneck) in End::BOTH.iter().zip(&cable.bottlenecks) {
                let Some(bottleneck) = bottleneck else {
                    continue;
                };
                let kind = match bottleneck.kind {
                    BottleneckKind::Fifo { bytes } => format!("fifo_bytes={bytes}"),
                    BottleneckKind::Policer {
                        burst_bytes,
                        refresh_ns,
                    } => {
                        format!("burst_bytes={burst_bytes} refresh_ns={refresh_ns}")
                    }
                };
                self.run(format_args!(
                    "echo end={end} rate_bps={} {kind} delay_ns={} > {WIRE}/{}/bottleneck",
                    bottleneck.rate_bps, bottleneck.delay_ns, cable.name
                ));
            }
        }
        self.shared_ports();
        for host in 0..cell.hosts.len() {
            self.host_network(host);
        }
    }

    /// Tells the wire module which cables' frames enter the bottleneck of another cable.
    fn shared_ports(&mut self) {
        let cell = self.cell;
        for cable in &cell.cables {
            for (end, bottleneck) in End::BOTH.iter().zip(&cable.bottlenecks) {
                if let Some(also) = bottleneck.as_ref().and_then(|b| b.also) {
                    self.run(format_args!(
                        "echo into={} from={} end={end} > {WIRE}/share",
                        cable.name, cell.cables[also].name
                    ));
                }
            }
        }
    }

    /// Sets addresses, permanent neighbours, routes and settings of one host.
    fn host_network(&mut self, host: usize) {
        let cell = self.cell;
        let mut lines = vec!["link set lo up".to_owned()];
        let own: Vec<Direction> = leaving(&cell.cables, host).collect();
        for hop in &own {
            let device = self.device(*hop);
            for nth in 0..cell.hosts[host].addresses {
                let own = address(hop.cable, hop.end, nth);
                lines.push(format!("addr add {own}/16 dev {device}"));
            }
            lines.push(format!("link set {device} up"));
            let far = hop.end.other();
            let hardware = hardware_address(hop.cable, far);
            for nth in 0..cell.hosts[far_host(&cell.cables, *hop)].addresses {
                let far = address(hop.cable, far, nth);
                lines.push(format!(
                    "neigh add {far} lladdr {hardware} dev {device} nud permanent"
                ));
            }
        }
        for route in routes(&cell.cables, cell.hosts.len(), host) {
            let gateway = address(route.via.cable, route.via.end.other(), 0);
            let device = self.device(route.via);
            let net = route.to_cable + 1;
            lines.push(format!(
                "route add 10.{net}.0.0/16 via {gateway} dev {device}"
            ));
        }
        let name = self.host(host).to_owned();
        let path = self.file(&format!("ip.{name}"), &lines);
        self.run(format_args!("ip -n {name} -batch /{path}"));
        let mut settings: Vec<String> = Vec::new();
        if own.len() > 1 {
            settings.push("net.ipv4.ip_forward=1".into());
        }
        let given = cell.sysctls.iter().filter(|sysctl| sysctl.host == host);
        settings.extend(given.map(|sysctl| format!("{}={}", sysctl.key, sysctl.value)));
        if !settings.is_empty() {
            let words: Vec<String> = settings.iter().map(|setting| quote(setting)).collect();
            self.run(format_args!(
                "ip netns exec {name} sysctl -q -w {}",
                words.join(" ")
            ));
        }
    }
}
