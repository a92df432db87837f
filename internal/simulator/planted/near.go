package planted

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nearText names, a fault a line, the seed that found it last: the search begins with it and
// its neighbours. When histories change, that finds nothing any more; then all seeds are
// looked at, which takes seconds a fault, until go test -update writes the file anew.
//
//go:embed near.txt
var nearText string

// near is the seed near which a fault was found, 0: none is known.
func near(name string) uint64 {
	for line := range strings.Lines(nearText) {
		if seed, of, _ := strings.Cut(strings.TrimSpace(line), " "); of == name {
			n, err := strconv.ParseUint(seed, 10, 64)
			if err != nil {
				panic(fmt.Sprintf("near.txt: %q: %v", line, err)) // our own file
			}
			return n
		}
	}
	return 0
}

// nearLines is the text of near.txt for what was found.
func nearLines(all []Found) string {
	var lines []string
	for _, f := range all {
		if f.Seed > 0 {
			lines = append(lines, fmt.Sprintf("%d %s\n", f.Seed, f.Fault.Name))
		}
	}
	slices.SortFunc(lines, func(a, b string) int {
		_, x, _ := strings.Cut(a, " ")
		_, y, _ := strings.Cut(b, " ")
		return strings.Compare(x, y)
	})
	return strings.Join(lines, "")
}
