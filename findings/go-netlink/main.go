// SPDX-License-Identifier: MIT OR Apache-2.0

// Makes fq or fq_codel the root of a device, from a literal of the library's or by its function.
package main

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
)

func main() {
	link, err := netlink.LinkByName(os.Args[2])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	root := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	made := map[string]netlink.Qdisc{
		"fq_literal":        &netlink.Fq{QdiscAttrs: root},
		"fq_function":       netlink.NewFq(root),
		"fq_codel_literal":  &netlink.FqCodel{QdiscAttrs: root},
		"fq_codel_function": netlink.NewFqCodel(root),
	}[os.Args[1]]
	if err := netlink.QdiscAdd(made); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
