// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads unit, container and pod out of a cgroup's path, as systemd, container runtimes and
//! Kubernetes name their cgroups. Nothing is asked of any of them.

use units::printable::printable;

/// What a cgroup's path says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) unit: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) pod: Option<String>,
}

/// Suffixes of units that have processes. A slice only groups them.
const UNITS: [&str; 5] = [".service", ".scope", ".socket", ".mount", ".swap"];
/// Digits of a container's id.
const ID_DIGITS: usize = 64;

/// Parses a path. Of nested units and containers the innermost counts.
pub(crate) fn parse(path: &str) -> Parts {
    let components: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let above = |i: usize| components[..i].last().copied().unwrap_or_default();
    let mut parts = Parts::default();
    let is_unit = |part: &&str| UNITS.iter().any(|suffix| part.ends_with(suffix));
    let is_slice = |part: &&str| part.ends_with(".slice");
    let unit = components.iter().rev().copied();
    let unit = unit.clone().find(is_unit).or(unit.clone().find(is_slice));
    parts.unit = unit.map(str::to_owned);
    let in_pods = components.iter().any(|part| part.starts_with("kubepods"));
    for (i, part) in components.iter().enumerate() {
        if let Some(container) = container(part, above(i)) {
            parts.container = Some(container);
        }
        if let Some(pod) = pod(part, in_pods) {
            parts.pod = Some(pod);
        }
    }
    parts
}

fn container(part: &str, above: &str) -> Option<String> {
    // crio-conmon-ID.scope and libpod-conmon-ID.scope hold the runtime's helper alone.
    if part.contains("conmon-") {
        return None;
    }
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(name.to_owned());
    }
    if let Some(scope) = part.strip_suffix(".scope") {
        if let Some(name) = scope.strip_prefix("machine-") {
            return Some(unescape(name));
        }
        // docker-ID, cri-containerd-ID, crio-ID, libpod-ID, nerdctl-ID
        let (_, id) = scope.rsplit_once('-')?;
        return is_id(id).then(|| id.to_owned());
    }
    if let Some(service) = part.strip_suffix(".service") {
        return service.strip_prefix("systemd-nspawn@").map(unescape);
    }
    if above == "lxc" {
        return Some(part.to_owned());
    }
    // ID below docker, a pod or the like; or SLICE:cri-containerd:ID.
    let id = part.rsplit_once(':').map_or(part, |(_, id)| id);
    is_id(id).then(|| id.to_owned())
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn pod(part: &str, in_pods: bool) -> Option<String> {
    let name = part.split(':').next().unwrap_or(part);
    if let Some(id) = name.strip_suffix(".slice").and_then(podman_pod) {
        return Some(id.to_owned());
    }
    if !in_pods {
        return None;
    }
    let uid = match name.strip_suffix(".slice") {
        // kubepods-burstable-podUID.slice: systemd takes "-" for a level.
        Some(slice) => slice.rsplit_once("-pod").map(|(_, uid)| uid),
        None => name.strip_prefix("pod"),
    };
    let uid = uid?.replace('_', "-");
    (!uid.is_empty()).then_some(uid)
}

/// Returns the id of `machine-libpod_pod_ID` or `user-libpod_pod_ID`.
fn podman_pod(slice: &str) -> Option<&str> {
    let (_, id) = slice.rsplit_once("-libpod_pod_")?;
    is_id(id).then_some(id)
}

/// Undoes systemd's escapes: `\x2d` is `-`.
fn unescape(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend(before.as_bytes());
        let digits = after.get(..2);
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.extend(b"\\x");
            rest = after;
        }
    }
    bytes.extend(rest.as_bytes());
    printable(&String::from_utf8_lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "12345678-9abc-def0-1234-56789abcdef0";

    #[test]
    fn paths_of_systemd_runtimes_and_kubernetes() {
        let uid_ = UID.replace('-', "_");
        // Path, unit, container, pod.
        let cases: [(String, &str, &str, &str); 25] = [
            ("/".into(), "", "", ""),
            (String::new(), "", "", ""),
            ("/init.scope".into(), "init.scope", "", ""),
            ("/system.slice/nginx.service".into(), "nginx.service", "", ""),
            ("/system.slice/system-getty.slice/getty@tty1.service".into(), "getty@tty1.service", "", ""),
            ("/system.slice/docker.service/init".into(), "docker.service", "", ""),
            ("/system.slice".into(), "system.slice", "", ""),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-4711.scope".into(),
                "app-firefox-4711.scope", "", "",
            ),
            ("/user.slice/user-1000.slice/session-2.scope".into(), "session-2.scope", "", ""),
            (format!("/system.slice/docker-{ID}.scope"), &format!("docker-{ID}.scope"), ID, ""),
            (format!("/docker/{ID}"), "", ID, ""),
            (format!("/docker/{ID}/system.slice/sshd.service"), "sshd.service", ID, ""),
            (format!("/machine.slice/libpod-{ID}.scope/container"), &format!("libpod-{ID}.scope"), ID, ""),
            (format!("/machine.slice/libpod-conmon-{ID}.scope"), &format!("libpod-conmon-{ID}.scope"), "", ""),
            (
                format!("/machine.slice/machine-libpod_pod_{ID}.slice/libpod-{}.scope", ID.replace('0', "f")),
                &format!("libpod-{}.scope", ID.replace('0', "f")), &ID.replace('0', "f"), ID,
            ),
            (
                format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid_}.slice/cri-containerd-{ID}.scope"),
                &format!("cri-containerd-{ID}.scope"), ID, UID,
            ),
            (
                format!("/kubepods.slice/kubepods-pod{uid_}.slice/crio-{ID}.scope/container"),
                &format!("crio-{ID}.scope"), ID, UID,
            ),
            (format!("/kubepods/besteffort/pod{UID}/{ID}"), "", ID, UID),
            (format!("/kubelet.slice/kubelet-kubepods.slice/kubepods/pod{UID}"), "kubelet-kubepods.slice", "", UID),
            (
                format!("/system.slice/containerd.service/kubepods-burstable-pod{uid_}.slice:cri-containerd:{ID}"),
                "containerd.service", ID, UID,
            ),
            ("/lxc.payload.web1/system.slice/nginx.service".into(), "nginx.service", "web1", ""),
            ("/lxc.monitor.web1".into(), "", "", ""),
            ("/lxc/web1".into(), "", "web1", ""),
            (
                r"/machine.slice/machine-qemu\x2d1\x2dvm.scope".into(),
                r"machine-qemu\x2d1\x2dvm.scope", "qemu-1-vm", "",
            ),
            (
                r"/machine.slice/systemd-nspawn@deb\x2dian.service/payload".into(),
                r"systemd-nspawn@deb\x2dian.service", "deb-ian", "",
            ),
        ]
        .map(|(path, unit, container, pod)| {
            let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
            (path, leak(unit), leak(container), leak(pod))
        });
        for (path, unit, container, pod) in cases {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let expected = Parts {
                unit: some(unit),
                container: some(container),
                pod: some(pod),
            };
            assert_eq!(parse(&path), expected, "{path}");
        }
    }

    #[test]
    fn what_looks_like_a_pod_or_an_id_is_none() {
        assert_eq!(parse("/podium/pod").pod, None);
        assert_eq!(
            parse(&format!("/system.slice/x-{}.scope", &ID[1..])).container,
            None
        );
        assert_eq!(parse("/kubepods/pod").pod, None);
        assert_eq!(unescape(r"a\x2d\xzz\x"), r"a-\xzz\x");
        assert_eq!(unescape(r"a\x1b[2J"), "a\u{fffd}[2J");
    }
}
