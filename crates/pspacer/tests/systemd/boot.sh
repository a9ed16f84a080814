#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: boots Debian's systemd with udev and the package's unit, in a
# root and a process namespace of its own, and prints what inside.sh finds there. The kernel,
# its devices and its network are the guest's: the cable's end c1a is what the unit paces.
#
#   /systemd      this test's files: the command, its libraries, root.tar, inside.sh, maybe c1a.toml
#   /root.new     systemd's root; /guest in it is the guest's own

. /systemd/lib.sh

new=/root.new
mkdir $new
mount -t tmpfs -o mode=755 tmpfs $new
tar -xf /systemd/root.tar -C $new
for folder in proc sys dev run srv tmp var/log etc/pspacer root usr/bin guest out systemd; do
	mkdir -p $new/$folder
done
mount --bind /systemd $new/systemd
mount --bind / $new/guest
mount --rbind /sys $new/sys
mount --rbind /dev $new/dev
cp /bin/busybox $new/usr/bin/busybox
for applet in cat chroot dmesg grep head kill mkdir rm sed seq sleep tail tee tr; do
	[ -e $new/usr/bin/$applet ] || ln -s busybox $new/usr/bin/$applet
done

printf 'root:x:0:0:root:/root:/bin/sh\n' >$new/etc/passwd
printf 'root:x:0:\n' >$new/etc/group
echo laboratory >$new/etc/hostname
tr -d - </proc/sys/kernel/random/uuid >$new/etc/machine-id
cat >$new/usr/bin/pspacer <<-'END'
	#!/bin/sh
	exec /systemd/ld.so --library-path /systemd /systemd/pspacer "$@"
END
chmod 755 $new/usr/bin/pspacer
for unit in pspacer@.service pspacer-follow.service pspacer-agent.service pspacer-manager.service; do
	cp /systemd/$unit $new/usr/lib/systemd/system/
	chmod 644 $new/usr/lib/systemd/system/$unit
done
cat >$new/etc/pspacer/c1a.toml <<-'END'
	[[device]]
	name = "c1a"
	default = "rest"
	byte_queue_limit_min = "64kb"

	[[device.class]]
	name = "backup"
	rate = "300mbit"

	[[device.class]]
	name = "rest"
	type = "normal"
END

# The test may have another file for it.
[ ! -e /systemd/c1a.toml ] || cp /systemd/c1a.toml $new/etc/pspacer/

mkdir -p $new/etc/default
cat >$new/etc/default/pspacer-agent <<-'END'
	AGENT="--node a --port s=c1b --poll 200ms"
END
cat >$new/etc/default/pspacer-manager <<-'END'
	MANAGER="--topology /etc/pspacer/manager/net.toml --store sqlite:/var/lib/pspacer/r.db"
END
# A folder of its own: pspacer@.service reads /etc/pspacer/*.toml.
mkdir -p $new/var/lib $new/etc/pspacer/manager
cat >$new/etc/pspacer/manager/net.toml <<-'END'
	[[host]]
	name = "a"
	[[host]]
	name = "b"
	[[segment]]
	name = "s"
	medium = "shared"
	rate = "100mbit"
	members = ["a", "b"]
END

# The check runs as a service that, like any user of the network, comes after it is online.
cat >$new/etc/systemd/system/laboratory.service <<-'END'
	[Unit]
	Wants=network-online.target
	After=network-online.target
	[Service]
	Type=oneshot
	ExecStart=/bin/sh /systemd/inside.sh
	StandardOutput=append:/out/said
	StandardError=inherit
	ExecStopPost=/bin/systemctl poweroff --force --force
	[Install]
	WantedBy=multi-user.target
END
chroot $new systemctl enable pspacer@c1a.service laboratory.service
ln -sf /lib/systemd/system/multi-user.target $new/etc/systemd/system/default.target

# A slow NIC appears while systemd is already at work.
(sleep 4 && cable c1 1000000000 sink=1) &

# When systemd powers off, the kernel ends its processes with a signal.
unshare --fork --pid --mount sh -c "
	mount -t proc proc $new/proc && mount -t tmpfs tmpfs $new/run &&
	exec chroot $new /lib/systemd/systemd --log-target=console" >/out/systemd.log 2>&1 </dev/null || true
cat $new/out/said || true
if ! grep -q '^1\.\.' $new/out/said; then
	echo "not ok - the service laboratory has not come to its end"
	tail -n 100 /out/systemd.log
	exit 1
fi
! grep -q '^not ok' $new/out/said
