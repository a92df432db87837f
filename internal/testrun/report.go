package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	// slowest is the number of packages in the list of slow packages.
	slowest = 40
	// slowTestLimit is the minimum duration of a test in the list of slow tests.
	slowTestLimit = 10 * time.Second
	// maxFailureLines is the maximum number of lines of a failure that the report prints again.
	maxFailureLines = 60
)

// report lists the slowest packages and tests. The failures are at the end, because people look at the end of
// the output.
func report(out *lines, parts []*part, total time.Duration) {
	var packages, tests []timed
	for _, p := range parts {
		packages = append(packages, p.tests.packages...)
		tests = append(tests, p.tests.tests...)
	}
	packages, tests = sorted(packages), sorted(tests)
	out.print("\nseconds of the slowest packages, and their CPU if it was measured, of %d:", len(packages))
	for _, p := range packages[:min(slowest, len(packages))] {
		out.print("%7.1f %7.1f  %s", p.took.Seconds(), p.cpu.Seconds(), p.name)
	}
	out.print("tests of %s and more:", slowTestLimit)
	for _, t := range tests {
		if t.took >= slowTestLimit {
			out.print("%7.1f  %s", t.took.Seconds(), t.name)
		}
	}
	out.print("parts, which run at once, and their CPU without that of shared servers:")
	for _, p := range parts {
		out.print("%7.1f %7.1f  %s%s", p.took.Seconds(), p.cpu.Seconds(), p.name, map[bool]string{true: " FAILED"}[p.err != nil])
	}
	out.print("%7.1f  in all", total.Seconds())
	for _, p := range parts {
		for _, text := range p.tests.failed {
			lines := strings.Split(text, "\n")
			out.print("failed in %s:\n%s", p.name, strings.Join(lines[max(0, len(lines)-maxFailureLines):], "\n"))
		}
	}
}

func sorted(all []timed) []timed {
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.took, a.took) })
	return all
}
