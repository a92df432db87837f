package main

import (
	"cmp"
	"slices"
	"time"
)

const (
	// slowest is how many packages are listed.
	slowest = 12
	// long is what a test takes that is listed.
	long = 10 * time.Second
)

// report says what dominates.
func report(out *lines, parts []*part, total time.Duration) {
	var packages, tests []timed
	for _, p := range parts {
		packages = append(packages, p.tests.packages...)
		tests = append(tests, p.tests.tests...)
	}
	packages, tests = sorted(packages), sorted(tests)
	out.print("\nseconds of the slowest packages, of %d:", len(packages))
	for _, p := range packages[:min(slowest, len(packages))] {
		out.print("%7.1f  %s", p.took.Seconds(), p.name)
	}
	out.print("tests of %s and more:", long)
	for _, t := range tests {
		if t.took >= long {
			out.print("%7.1f  %s", t.took.Seconds(), t.name)
		}
	}
	out.print("parts, which run at once, and their CPU without that of shared servers:")
	for _, p := range parts {
		out.print("%7.1f %7.1f  %s%s", p.took.Seconds(), p.cpu.Seconds(), p.name, map[bool]string{true: " FAILED"}[p.err != nil])
	}
	out.print("%7.1f  in all", total.Seconds())
}

func sorted(all []timed) []timed {
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.took, a.took) })
	return all
}
