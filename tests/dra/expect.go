// SPDX-License-Identifier: MIT OR Apache-2.0

// What tests in Go end with; tests/dra and tests/cluster copy it beside their programs.
package main

import (
	"fmt"
	"log"
)

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func expect(what string, isSo bool) {
	if !isSo {
		log.Panicf("not so: %s", what)
	}
	fmt.Println("ok -", what)
}
