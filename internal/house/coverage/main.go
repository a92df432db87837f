// Command coverage prints which test covers which law, decided case, trap and requirement. The numbers are in
// the names of subtests, such as "trap_6_…", "law_3_…", "case_14_…" and "A3_…".
//
//	go run ./internal/house/coverage
package main

import (
	"fmt"
	"os"

	"github.com/semel-go/semel/internal/house"
)

func main() {
	files, err := house.Files(".")
	if err == nil {
		err = house.WriteCoverage(os.Stdout, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}
