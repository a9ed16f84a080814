#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# In what pieces web servers send that limit a connection's rate.
. "$(dirname "$0")/lib.sh"

finding 'a server that is told 1 MiB/s for each connection sends a little each few milliseconds, and four connections at four times' \
	'nginx (limit_rate, with sendfile on) and lighttpd (connection.kbytes-per-second) send a second'\''s bytes in one piece, at
       the speed of the network, and then nothing until the next second. What lighttpd counts begins anew with each second of
       the clock, for all connections: whenever they began, they all send within the same milliseconds. nginx without sendfile
       and HAProxy (bwlim-out) send some 60 kB at once, Apache (rate-limit) a fifth of a second'

packages "$work/tree" trixie nginx=1.26.3-3+deb13u10 lighttpd=1.4.79-2 haproxy=3.0.11-1+deb13u4 apache2-bin=2.4.71-1~deb13u1
tree=$work/tree
devices "$tree"
mkdir -p "$tree/run" "$tree/tmp/www" "$tree/var/lib/nginx" "$tree/var/log/nginx"
chmod 777 "$tree/tmp" "$tree/tmp/www" "$tree/var/lib/nginx" "$tree/var/log/nginx"
head -c 60000000 /dev/zero >"$tree/tmp/www/file"
user "$tree" root 0
user "$tree" www 33
cat >"$tree/tmp/nginx" <<'END'
daemon off;
user www www;
worker_processes 1;
events { }
http { access_log off; sendfile on; server { listen 8000; root /tmp/www; limit_rate 1m; } }
END
cat >"$tree/tmp/lighttpd" <<'END'
server.document-root = "/tmp/www"
server.port = 8000
connection.kbytes-per-second = 1024
END
cat >"$tree/tmp/apache" <<'END'
ServerRoot /tmp
ServerName finding
Listen 8000
PidFile /tmp/apache.pid
ErrorLog /tmp/apache.log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule env_module /usr/lib/apache2/modules/mod_env.so
LoadModule ratelimit_module /usr/lib/apache2/modules/mod_ratelimit.so
User www
Group www
DocumentRoot /tmp/www
SetOutputFilter RATE_LIMIT
SetEnv rate-limit 1024
END
cat >"$tree/tmp/haproxy" <<'END'
defaults
 mode http
 timeout connect 5s
 timeout client 60s
 timeout server 60s
frontend limited
 bind 127.0.0.1:8000
 filter bwlim-out each default-limit 1m default-period 1s
 http-response set-bandwidth-limit each
 default_backend source
backend source
 server source 127.0.0.1:8001
END
# What HAProxy stands before.
sed '/RATE_LIMIT/d; /rate-limit/d; s/8000/8001/' "$tree/tmp/apache" >"$tree/tmp/source"

# reads CONNECTIONS COMMAND: what came in 6 s.
reads() {
	timeout 60 unshare -n -p -f --kill-child python3 "$here/transfers/reads.py" "$1" 6 sh -c "$2" >"$work/pieces"
}
# of AWK: of the pieces behind the first 1.5 s.
of() { awk '$2 >= 1.5' "$work/pieces" | awk "$1"; }
sum='{ sum += $4 } END { print int(sum / 4.5 / 1.048576) / 1000 }'
# pieces NAME LEAST MOST: the median and the mean rate of one connection.
pieces() {
	seen_within "$1, one connection: MiB/s" "$(of "$sum")" 0.85 1.15
	seen_within "$1, one connection: kB in the median piece" "$(of '{ print $4 }' | sort -n | awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }')" "$2" "$3"
}
# within NAME LEAST MOST: in how many ms of the clock's second four connections send three quarters of what they send.
within() {
	of '{ print int($1 / 50), $4 }' |
		awk '{ kb[$1] += $2; all += $2 } END { for (at in kb) print kb[at], all }' | sort -rn |
		awk '!done { sum += $1; n++; if (sum >= .75 * $2) { print n * 50; done = 1 } }' >"$work/width"
	seen_within "$1, four connections: ms of each second with three quarters of the bytes" "$(cat "$work/width")" "$2" "$3"
}
reads 1 "exec chroot $tree nginx -c /tmp/nginx"
pieces nginx 1000 1100
reads 4 "exec chroot $tree nginx -c /tmp/nginx"
within nginx 150 250
sed -i 's/sendfile on/sendfile off/' "$tree/tmp/nginx"
reads 1 "exec chroot $tree nginx -c /tmp/nginx"
pieces 'nginx without sendfile' 50 80
reads 1 "exec chroot $tree lighttpd -D -f /tmp/lighttpd"
pieces lighttpd 1000 1100
reads 4 "exec chroot $tree lighttpd -D -f /tmp/lighttpd"
within lighttpd 50 100
reads 1 "exec chroot $tree apache2 -DFOREGROUND -f /tmp/apache"
pieces apache 200 220
reads 1 "chroot $tree apache2 -f /tmp/source && exec chroot $tree haproxy -db -f /tmp/haproxy"
pieces haproxy 10 130
done_
