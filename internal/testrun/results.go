package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is one line of the output of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// timed is a package or a test with its duration, and with its CPU time if scripts/raced has printed it.
type timed struct {
	name      string
	took, cpu time.Duration
}

// results contains the results in a stream of events.
type results struct {
	out             *lines
	printed         map[string]*strings.Builder // output by package or test; some tests print megabytes
	parents         map[string]bool             // tests with subtests; the duration of such a test is the duration of its subtests
	cpu             map[string]time.Duration
	packages, tests []timed
	failed          []string // the output of failures
}

func newResults(out *lines) *results {
	return &results{out: out, printed: map[string]*strings.Builder{}, cpu: map[string]time.Duration{}, parents: map[string]bool{}}
}

// take reads a line as an event. If the line is not an event, take returns false.
func (r *results) take(line string) bool {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		return false
	}
	name := strings.Trim(e.Package+e.ImportPath+" "+e.Test, " ")
	switch e.Action {
	case "output", "build-output":
		if r.printed[name] == nil {
			r.printed[name] = &strings.Builder{}
		}
		r.printed[name].WriteString(e.Output)
		if strings.HasPrefix(e.Output, "cpu ") { // printed by scripts/raced
			var user, system float64
			if n, _ := fmt.Sscanf(e.Output, "cpu %f %f\n", &user, &system); n == 2 {
				r.cpu[name] += time.Duration((user + system) * float64(time.Second))
			}
		}
	case "pass", "fail", "skip", "build-fail":
		r.ended(e, name)
	}
	return true
}

func (r *results) ended(e event, name string) {
	if strings.HasSuffix(e.Action, "fail") {
		if e.Test == "" { // tests that were running when the process ended have no end event
			r.rest(e.Package + e.ImportPath + " ")
		}
		r.show(name)
	}
	delete(r.printed, name)
	took := timed{name, time.Duration(e.Elapsed * float64(time.Second)), r.cpu[name]}
	if slash := strings.LastIndex(name, "/"); e.Test != "" && strings.Contains(e.Test, "/") {
		r.parents[name[:slash]] = true
	}
	switch {
	case e.Test != "":
		if !r.parents[name] {
			r.tests = append(r.tests, took)
		}
	case e.Package != "" && e.Action != "skip":
		r.packages = append(r.packages, took)
		r.out.print("%-4s %s %.1f s", e.Action, name, e.Elapsed)
	}
}

// rest prints the output of tests and packages that never reported an end. The parameter prefix is the beginning of
// their names.
func (r *results) rest(prefix string) {
	for _, name := range slices.Sorted(maps.Keys(r.printed)) {
		if strings.HasPrefix(name, prefix) {
			r.show(name)
			delete(r.printed, name)
		}
	}
}

// show prints the output of a failure and saves the output for the report.
func (r *results) show(name string) {
	text := ""
	if printed := r.printed[name]; printed != nil {
		text = strings.TrimRight(printed.String(), "\n")
	}
	r.out.print("%s", text)
	r.failed = append(r.failed, text)
}
